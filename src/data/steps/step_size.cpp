#include "data/steps/step_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep {

void PerRankConfig::describe(Fields& f, const std::string& items) {
  std::string help =
      fmt::format("{} of a micro-batch of one rank, in place of the whole step's", items);
  if (is_on() && ranks_ > 0) {
    help +=
        fmt::format("; here {} x {} rank{}{} = {} a step", per_rank, ranks_, ranks_ == 1 ? "" : "s",
                    accumulate_ > 1 ? fmt::format(" x {} micro-batches", accumulate_) : "",
                    per_rank * ranks_ * accumulate_);
  } else {
    help += "; 0: those count";
  }
  f("per_rank", &per_rank, AtLeast{0}, help);
}

int64_t PerRankConfig::settle(int64_t ranks, int64_t accumulate) {
  ranks_ = ranks;
  accumulate_ = accumulate;
  return per_rank * ranks * accumulate;
}

void EpochSteps::continue_epoch(int64_t epoch, std::vector<EpochStretch> done) {
  continued_epoch_ = epoch;
  done_ = std::move(done);
}

int64_t EpochSteps::full_steps(int64_t epoch, int64_t items) const {
  int64_t steps = 0, left = items;
  if (epoch == continued_epoch_) {
    for (const EpochStretch& stretch : done_) {
      steps += stretch.steps;
      left -= stretch.steps * stretch.each.size;
    }
  }
  return steps + std::max<int64_t>(0, left) / size_;
}

EpochSteps::Range EpochSteps::range(int64_t epoch, int64_t step, int64_t items) const {
  int64_t begin = 0, size = size_;
  if (epoch == continued_epoch_) {
    for (const EpochStretch& stretch : done_) {
      const int64_t steps = std::min(step, stretch.steps);
      begin += steps * stretch.each.size;
      step -= steps;
      if (steps < stretch.steps) {
        size = stretch.each.size;
        break;
      }
    }
  }
  begin = std::min(items, begin + step * size);
  return {begin, std::min(items, begin + size)};
}

}  // namespace lockstep
