// Sends the times of every rank's steps to rank 0. Each rank puts those of its previous step into
// its own slots of the all-reduce that a step makes anyway, where the other ranks put zeros.
#pragma once

#include <span>
#include <vector>

#include "dist/account/step_account.h"
#include "formats/step_times.h"

namespace lockstep {

// `place` has kRankTimesFields numbers.
void put_times(const AccountedStep& step, std::span<double> place);

// `sums` holds the slots of all ranks, by rank; a rank that took no part in the sum (in local
// steps, one outside rank 0's group) has zeros. `peers`, the time a rank waited until the last rank
// began to wait, is the difference of their busy times: both count from the end of the previous
// exchange, which all ranks leave at the same time up to one network delay.
std::vector<RankTimes> take_times(std::span<const double> sums);

}  // namespace lockstep
