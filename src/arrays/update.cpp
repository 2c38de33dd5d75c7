#include "arrays/update.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace lockstep {

namespace {

UpdateArgs update_args(const UpdateArrays& arrays, const UpdateStep& step) {
  UpdateArgs args{};
  args.value = arrays.value;
  args.gradient = arrays.gradient;
  args.bf16 = arrays.bf16;
  args.fp16 = arrays.fp16;
  args.average = arrays.average;
  args.gradient_scale = static_cast<float>(step.gradient_scale);
  args.shrink = static_cast<float>(step.decoupled ? 1 - step.lr * step.weight_decay : 1);
  args.l2_decay = static_cast<float>(step.decoupled ? 0 : step.weight_decay);
  args.average_rate = static_cast<float>(1 - step.average_decay);
  return args;
}

void check_range(int64_t begin, int64_t end) {
  TORCH_CHECK(begin >= 0 && begin <= end, "an update of [", begin, ", ", end, ")");
}

// Blocks are fixed, so that the same elements fall into the vector loop and its remainder whichever
// thread takes the block.
template <class F>
void for_each_block(int64_t begin, int64_t end, const F& f) {
  constexpr int64_t kBlock = 8192;
  at::parallel_for(0, (end - begin + kBlock - 1) / kBlock, 4, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      f(begin + block * kBlock, std::min(end, begin + (block + 1) * kBlock));
    }
  });
}

}  // namespace

AdamArgs adam_args(const UpdateArrays& arrays, const AdamStep& step) {
  const double count = static_cast<double>(step.step);
  const double correction1 = 1 - std::pow(step.beta1, count);
  const double root2 = std::sqrt(1 - std::pow(step.beta2, count));
  AdamArgs args{};
  args.update = update_args(arrays, step);
  args.m = arrays.m;
  args.v = arrays.v;
  args.rate1 = static_cast<float>(1 - step.beta1);
  args.beta2 = static_cast<float>(step.beta2);
  args.rate2 = static_cast<float>(1 - step.beta2);
  args.epsilon = static_cast<float>(step.epsilon);
  args.step_size = static_cast<float>(step.lr / correction1 * (step.corrected_epsilon ? 1 : root2));
  args.second_scale = static_cast<float>(step.corrected_epsilon ? 1 / root2 : 1);
  return args;
}

MomentumArgs momentum_args(const UpdateArrays& arrays, const MomentumStep& step) {
  MomentumArgs args{};
  args.update = update_args(arrays, step);
  args.m = arrays.m;
  args.decay = static_cast<float>(step.decay);
  args.share = static_cast<float>(step.share);
  args.from_gradient = step.nesterov ? 1 : 0;
  args.from_m = static_cast<float>(step.nesterov ? step.decay : 1);
  args.lr = static_cast<float>(step.lr);
  return args;
}

void adam_step(const UpdateArrays& arrays, const AdamStep& step, int64_t begin, int64_t end) {
  check_range(begin, end);
  TORCH_CHECK(step.step >= 1, "Adam at step ", step.step);
  const AdamArgs args = adam_args(arrays, step);
  const auto kernel = kernels().adam;
  for_each_block(begin, end, [&](int64_t first, int64_t last) { kernel(args, first, last); });
}

void momentum_step(const UpdateArrays& arrays, const MomentumStep& step, int64_t begin,
                   int64_t end) {
  check_range(begin, end);
  const MomentumArgs args = momentum_args(arrays, step);
  const auto kernel = kernels().momentum;
  for_each_block(begin, end, [&](int64_t first, int64_t last) { kernel(args, first, last); });
}

void lazy_adam_step(const UpdateArrays& arrays, const AdamStep& step, const TableRows& table,
                    int64_t begin, int64_t end) {
  check_range(begin, end);
  if (begin == end) return;
  const AdamArgs args = adam_args(arrays, step);
  const int64_t width = table.width, shift = begin - table.first;  // element of table -> of arrays
  const int64_t first_row = table.first / width;
  const int64_t last_row = (table.first + (end - begin) + width - 1) / width;
  const Kernels& k = kernels();
  const int64_t grain = std::max<int64_t>(1, 32768 / width);
  at::parallel_for(first_row, last_row, grain, [&](int64_t row, int64_t stop) {
    for (; row < stop; ++row) {
      const int64_t from = std::max(begin, row * width + shift);
      const int64_t to = std::min(end, (row + 1) * width + shift);
      if (!k.all_zero(table.gradient + row * width, width)) {
        k.adam(args, from, to);
      } else if (args.update.average != nullptr) {
        k.move_average(args.update, from, to);
      }
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
