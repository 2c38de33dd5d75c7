// Selects the ranks that a person wants to see: "0,2-3".
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lockstep {

class RankFilter {
 public:
  RankFilter() = default;                        // lets all through
  explicit RankFilter(const std::string& text);  // throws ConfigError when it is no list of ranks
  bool has(int rank) const;
  bool is_all() const { return ranges_.empty(); }

 private:
  std::vector<std::pair<int, int>> ranges_;  // first and last
};

}  // namespace lockstep
