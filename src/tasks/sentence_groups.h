// Divides sentences to decode among ranks, in groups that do not depend on the number of ranks, so
// that products have the same heights, and translations the same bits, whichever rank decodes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

using SentenceGroup = std::vector<std::size_t>;  // indices into the caller's list

// Groups sentences of similar length, the longest first. The longest of a group times its number of
// sentences is at most `tokens`, including </s> (except in a group of one). Empty sentences are in
// no group.
std::vector<SentenceGroup> group_by_length(const std::vector<std::vector<int32_t>>& sources,
                                           int64_t tokens);

struct RankOf {
  int rank = 0, size = 1;
};

// Returns the indices in `groups` of those that this rank decodes: each group goes to the rank with
// the least work so far. Some ranks have none when there are fewer groups than ranks.
std::vector<std::size_t> own_groups(const std::vector<SentenceGroup>& groups,
                                    const std::vector<std::vector<int32_t>>& sources,
                                    const RankOf& rank);

}  // namespace lockstep
