#include "tasks/sentence_groups.h"

#include <algorithm>

namespace lockstep {

std::vector<SentenceGroup> group_by_length(const std::vector<std::vector<int32_t>>& sources,
                                           int64_t tokens) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sources[a].size() > sources[b].size();
  });
  std::vector<SentenceGroup> groups;
  for (std::size_t i : order) {
    bool full =
        groups.empty() || (groups.back().size() + 1) * (sources[groups.back().front()].size() + 1) >
                              static_cast<std::size_t>(tokens);
    if (full) groups.emplace_back();
    groups.back().push_back(i);
  }
  return groups;
}

std::vector<std::size_t> own_groups(const std::vector<SentenceGroup>& groups,
                                    const std::vector<std::vector<int32_t>>& sources,
                                    const RankOf& rank) {
  std::vector<std::size_t> load(static_cast<std::size_t>(rank.size)), mine;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    auto least = std::min_element(load.begin(), load.end());
    *least += groups[g].size() * sources[groups[g].front()].size();
    if (least - load.begin() == rank.rank) mine.push_back(g);
  }
  return mine;
}

}  // namespace lockstep
