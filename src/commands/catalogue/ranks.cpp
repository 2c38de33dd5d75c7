#include "commands/catalogue/ranks.h"

#include <charconv>

#include "base/error.h"
#include "commands/catalogue/catalogue.h"
#include "commands/shared/computing.h"
#include "launch/job/rank_nursery.h"

namespace lockstep {

int ranks(const Arguments& arguments) {
  int orders = -1;
  const std::string text = arguments.empty() ? "" : arguments.front();
  const char* end = text.data() + text.size();
  if (arguments.size() != 1 || std::from_chars(text.data(), end, orders).ptr != end || orders < 3) {
    throw ConfigError("lockstep ranks is for lockstep launch: expected one descriptor");
  }
  load_computing();  // once for all ranks
  const std::vector<std::string> words = live_as_rank(orders);
  return commands().get(words.at(0))({words.begin() + 1, words.end()});
}

}  // namespace lockstep
