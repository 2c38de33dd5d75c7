// Shows RUN/live.json (docs/run-folder.md#livejson) as a table for people, 100 columns wide.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "report/run/rank_filter.h"

namespace lockstep {

struct LiveViewOptions {
  std::string run;     // as the user named it
  double now = 0;      // seconds since 1970, for the age of the file
  bool color = false;  // for a terminal
  int width = 0;       // of the terminal: longer lines are cut instead of wrapped; 0: not cut
  RankFilter ranks;
};

// Reads the live file of a run. Throws DataError when there is no run, when it does not train or
// never trained with heartbeats, or when the file is not valid.
nlohmann::json read_live(const fs::path& run);
nlohmann::json parse_live(const std::string& text, const std::string& where);

// Returns only the ranks that the filter lets through.
nlohmann::json only_ranks(nlohmann::json live, const RankFilter& ranks);

// Returns several lines, each ended by '\n'.
std::string live_table(const nlohmann::json& live, const LiveViewOptions& options);

}  // namespace lockstep
