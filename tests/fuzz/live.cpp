// live.json of a run, and the table that watch makes of it.
#include "report/live/live_view.h"

#include <nlohmann/json.hpp>

#include "fuzz.h"

FUZZ(bytes) {
  const nlohmann::json live = lockstep::parse_live(std::string(bytes), "live.json");
  lockstep::use(lockstep::live_table(live, {}));
}
