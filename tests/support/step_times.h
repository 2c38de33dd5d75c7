// Writes files of step times for tests: all steps are alike but for what a test changes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "formats/step_times.h"

namespace lockstep {

struct InventedTimes {
  int64_t first = 1, last = 100;
  int ranks = 2;
  double begin = 1000;  // of the first step
  // Changes a rank's times in a step; the default is 100 ms: 5 data, 30 forward, 50 backward, 10
  // wait, 5 optimizer.
  std::function<void(int64_t step, int rank, RankTimes& times)> change = nullptr;
};

inline RankTimes usual_times() {
  return {.data = 0.005F,
          .forward = 0.03F,
          .backward = 0.05F,
          .wait = 0.01F,
          .optimizer = 0.005F,
          .hidden = 0.02F,
          .sent_bytes = 4e6F,
          .received_bytes = 4e6F};
}

inline double step_seconds(const RankTimes& t) {
  return t.data + t.forward + t.backward + t.wait + t.optimizer + t.other;
}

// Writes one attempt into RUN/times; returns the time at which its last step ended.
inline double write_times(const fs::path& run, const InventedTimes& invented) {
  StepTimesWriter writer(run / "times", invented.ranks);
  double now = invented.begin;
  for (int64_t step = invented.first; step <= invented.last; ++step) {
    std::vector<RankTimes> ranks(static_cast<std::size_t>(invented.ranks), usual_times());
    for (int rank = 0; invented.change && rank < invented.ranks; ++rank) {
      invented.change(step, rank, ranks[static_cast<std::size_t>(rank)]);
    }
    writer.add(step, now, ranks);
    now += step_seconds(ranks.front());
  }
  return now;
}

}  // namespace lockstep
