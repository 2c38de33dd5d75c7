#include "train/records/rank_times.h"

#include <algorithm>
#include <array>
#include <bit>

namespace lockstep {
namespace {

using TimeFields = std::array<float, kRankTimesFields>;
static_assert(sizeof(TimeFields) == sizeof(RankTimes));

}  // namespace

// Sends the busy time in the place of `peers`, which take_times() computes from it.
void put_times(const AccountedStep& step, std::span<double> place) {
  RankTimes times = step.times;
  times.peers = static_cast<float>(step.busy);
  const auto fields = std::bit_cast<TimeFields>(times);
  std::copy(fields.begin(), fields.end(), place.begin());
}

std::vector<RankTimes> take_times(std::span<const double> sums) {
  std::vector<RankTimes> out;
  float busiest = 0;
  for (std::size_t at = 0; at + kRankTimesFields <= sums.size(); at += kRankTimesFields) {
    TimeFields fields;
    for (std::size_t f = 0; f < fields.size(); ++f) fields[f] = static_cast<float>(sums[at + f]);
    out.push_back(std::bit_cast<RankTimes>(fields));
    busiest = std::max(busiest, out.back().peers);
  }
  for (RankTimes& times : out) {
    const float busy = times.peers;
    times.peers = busy > 0 ? std::clamp(busiest - busy, 0.0F, times.wait) : 0;
  }
  return out;
}

}  // namespace lockstep
