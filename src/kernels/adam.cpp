#include "kernels/adam.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep {

void adam_step(const AdamArrays& arrays, const AdamStep& step, int64_t begin, int64_t end) {
  TORCH_CHECK(step.step >= 1 && begin >= 0 && begin <= end, "Adam over [", begin, ", ", end,
              ") at step ", step.step);
  const double count = static_cast<double>(step.step);
  const double correction1 = 1 - std::pow(step.beta1, count);
  const double correction2 = 1 - std::pow(step.beta2, count);
  AdamArgs args{};
  args.value = arrays.value;
  args.gradient = arrays.gradient;
  args.m = arrays.m;
  args.v = arrays.v;
  args.low = arrays.low;
  args.average = arrays.average;
  args.gradient_scale = static_cast<float>(step.gradient_scale);
  args.rate1 = static_cast<float>(1 - step.beta1);
  args.beta2 = static_cast<float>(step.beta2);
  args.rate2 = static_cast<float>(1 - step.beta2);
  args.epsilon = static_cast<float>(step.epsilon);
  args.step_size = static_cast<float>(step.lr / correction1);
  args.second_scale = static_cast<float>(1 / std::sqrt(correction2));
  args.shrink = static_cast<float>(step.decoupled ? 1 - step.lr * step.weight_decay : 1);
  args.l2_decay = static_cast<float>(step.decoupled ? 0 : step.weight_decay);
  args.average_rate = static_cast<float>(1 - step.average_decay);

  // Fixed blocks: vector loop and remainder fall on the same elements whoever takes the block.
  constexpr int64_t kBlock = 8192;
  const auto kernel = kernels().adam;
  at::parallel_for(0, (end - begin + kBlock - 1) / kBlock, 4, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      kernel(args, begin + block * kBlock, std::min(end, begin + (block + 1) * kBlock));
    }
  });
}

double sum_of_squares(const float* x, int64_t n) {
  constexpr int64_t kBlock = 16384;
  std::vector<double> sums(static_cast<std::size_t>((n + kBlock - 1) / kBlock));
  const auto kernel = kernels().sum_of_squares;
  at::parallel_for(0, static_cast<int64_t>(sums.size()), 4, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      sums[static_cast<std::size_t>(block)] =
          kernel(x + block * kBlock, std::min(kBlock, n - block * kBlock));
    }
  });
  double total = 0;
  for (double sum : sums) total += sum;
  return total;
}

}  // namespace lockstep
