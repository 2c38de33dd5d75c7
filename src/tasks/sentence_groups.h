// How ranks share out sentences to decode: in groups that do not depend on the number of ranks, so
// that products have the same heights, and translations the same bits, whoever makes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep {

using SentenceGroup = std::vector<std::size_t>;  // places in the caller's list

// Sentences of like length together, the longest first: a group's longest times its number of
// sentences is at most `tokens`, </s> counted (but for a group of one). Empty ones are in no group.
std::vector<SentenceGroup> group_by_length(const std::vector<std::vector<int32_t>>& sources,
                                           int64_t tokens);

struct RankOf {
  int rank = 0, size = 1;
};

// The places in `groups` of those that this rank decodes: each group goes to the rank with the
// least to do so far. Some ranks have none when there are fewer groups than ranks.
std::vector<std::size_t> own_groups(const std::vector<SentenceGroup>& groups,
                                    const std::vector<std::vector<int32_t>>& sources,
                                    const RankOf& rank);

}  // namespace lockstep
