// The times of every rank's steps on their way to rank 0: each rank puts those of its last step
// into its own place of the sum that a step takes anyway, where the others put zeros.
#pragma once

#include <span>
#include <vector>

#include "dist/account/step_account.h"
#include "formats/step_times.h"

namespace lockstep {

// `place`: kRankTimesFields numbers.
void put_times(const AccountedStep& step, std::span<double> place);

// `sums`: the places of all ranks, by rank. A rank that took no part in the sum, as others than
// rank 0's group in local steps, has zeros. What a rank waited until the last one had begun to
// wait (`peers`) is the difference of their busy times: all count from the end of the exchange
// before, which they left together but for one delay of the network.
std::vector<RankTimes> take_times(std::span<const double> sums);

}  // namespace lockstep
