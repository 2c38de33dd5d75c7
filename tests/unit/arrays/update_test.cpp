#include "arrays/update.h"

#include <gtest/gtest.h>
#include <torch/optim.h>

#include <cmath>
#include <vector>

#include "support/instruction_sets.h"

namespace lockstep {
namespace {

struct State {
  torch::Tensor value, gradient, m, v, low, average;
  explicit State(int64_t n) {
    at::Generator generator = at::detail::createCPUGenerator(3);
    value = torch::randn({n}, generator, torch::kFloat);
    gradient = torch::zeros({n});
    m = torch::zeros({n});
    v = torch::zeros({n});
    average = value.clone();
    low = value.to(torch::kBFloat16);
  }
  UpdateArrays arrays() {
    return {value.data_ptr<float>(),
            gradient.data_ptr<float>(),
            m.data_ptr<float>(),
            v.data_ptr<float>(),
            reinterpret_cast<Bf16*>(low.data_ptr()),
            average.data_ptr<float>()};
  }
};

torch::Tensor gradient_of_step(int64_t n, int64_t step) {
  return torch::sin(torch::arange(n, torch::kFloat) * 0.37 + static_cast<double>(step)) * 0.1;
}

double largest_difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// Ten steps of lockstep's kernel and of torch's optimizer from the same start.
template <class Optimizer, class Options>
void compare_with_torch(const Options& options, AdamStep step, int64_t n) {
  State state(n);
  torch::Tensor parameter = state.value.clone().set_requires_grad(true);
  Optimizer optimizer({parameter}, options);
  torch::Tensor average = state.value.clone();
  for (int64_t i = 1; i <= 10; ++i) {
    parameter.mutable_grad() = gradient_of_step(n, i);
    optimizer.step();
    average = average * 0.9 + parameter.detach() * 0.1;
    state.gradient.copy_(gradient_of_step(n, i) * 8);  // unscaled by the step
    step.step = i;
    step.gradient_scale = 0.125;
    step.average_decay = 0.9;
    adam_step(state.arrays(), step, 0, n);
    EXPECT_EQ(state.gradient.abs().sum().item<float>(), 0);
  }
  // Values up to 4.5, where an fp32 rounding is 2.4e-7: one or two a step, ten steps.
  EXPECT_LE(largest_difference(state.value, parameter.detach()), 4e-6);
  EXPECT_LE(largest_difference(state.average, average), 4e-6);
  EXPECT_TRUE(torch::equal(state.low, state.value.to(torch::kBFloat16)));
}

TEST(Adam, EqualsTorchsAdamWithL2Decay) {
  for_each_isa([] {
    for (int64_t n : {1, 17, 20000}) {
      auto options = torch::optim::AdamOptions(0.01).betas({0.9, 0.98}).eps(1e-9).weight_decay(0.1);
      AdamStep step;
      step.lr = 0.01;
      step.beta2 = 0.98;
      step.epsilon = 1e-9;
      step.weight_decay = 0.1;
      compare_with_torch<torch::optim::Adam>(options, step, n);
    }
  });
}

TEST(Adam, EqualsTorchsAdamWWithDecoupledDecay) {
  for_each_isa([] {
    auto options = torch::optim::AdamWOptions(0.01).weight_decay(0.1);
    AdamStep step;
    step.lr = 0.01;
    step.weight_decay = 0.1;
    step.decoupled = true;
    compare_with_torch<torch::optim::AdamW>(options, step, 1000);
  });
}

TEST(Adam, ShardsEqualTheWholeAndThreadsDoNotMatter) {
  constexpr int64_t kCount = 100000;
  auto run = [&](int threads, const std::vector<int64_t>& cuts) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    State state(kCount);
    state.gradient.copy_(gradient_of_step(kCount, 1));
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      adam_step(state.arrays(), {}, cuts[i], cuts[i + 1]);
    }
    at::set_num_threads(before);
    return state.value;
  };
  torch::Tensor whole = run(1, {0, kCount});
  EXPECT_TRUE(torch::equal(whole, run(2, {0, kCount})));
  EXPECT_TRUE(torch::equal(whole, run(2, {0, 4096, 65536, kCount})));
}

TEST(Adam, LeavesElementsOutsideOfTheRangeAlone) {
  State state(100);
  state.gradient.fill_(1);
  torch::Tensor before = state.value.clone();
  UpdateArrays arrays = state.arrays();
  arrays.bf16 = nullptr;
  arrays.average = nullptr;
  adam_step(arrays, {}, 10, 20);
  EXPECT_TRUE(torch::equal(state.value.narrow(0, 0, 10), before.narrow(0, 0, 10)));
  EXPECT_TRUE(torch::equal(state.value.narrow(0, 20, 80), before.narrow(0, 20, 80)));
  EXPECT_FALSE(torch::equal(state.value, before));
  EXPECT_EQ(state.gradient.sum().item<float>(), 90);
}

// Rows 1 and 3 were not used: they keep all but their average. Cut through rows, the same.
TEST(LazyAdam, LeavesRowsWithoutGradientAlone) {
  static constexpr int64_t kRows = 5, kWidth = 33, kCount = kRows * kWidth;
  for_each_isa([&] {
    State dense(kCount), lazy(kCount), cut(kCount);
    torch::Tensor used = torch::ones({kRows, 1});
    used[1] = used[3] = 0;
    for (int64_t i = 1; i <= 3; ++i) {
      torch::Tensor gradient = (gradient_of_step(kCount, i).view({kRows, kWidth}) * used).view(-1);
      AdamStep step;
      step.step = i;
      step.average_decay = 0.9;
      for (State* state : {&dense, &lazy, &cut}) state->gradient.copy_(gradient);
      adam_step(dense.arrays(), step, 0, kCount);
      const TableRows rows{lazy.gradient.const_data_ptr<float>(), kWidth, 0};
      lazy_adam_step(lazy.arrays(), step, rows, 0, kCount);
      TableRows part{cut.gradient.const_data_ptr<float>(), kWidth, 0};
      lazy_adam_step(cut.arrays(), step, part, 0, 48);
      part.first = 48;
      lazy_adam_step(cut.arrays(), step, part, 48, kCount);
    }
    State start(kCount);
    auto row = [](const torch::Tensor& t, int64_t r) { return t.view({kRows, kWidth})[r]; };
    for (int64_t r : {0, 2, 4}) {
      EXPECT_TRUE(torch::equal(row(lazy.value, r), row(dense.value, r)));
      EXPECT_TRUE(torch::equal(row(lazy.m, r), row(dense.m, r)));
    }
    for (int64_t r : {1, 3}) {
      EXPECT_TRUE(torch::equal(row(lazy.value, r), row(start.value, r)));
      EXPECT_EQ(row(lazy.m, r).abs().max().item<float>(), 0);
    }
    EXPECT_TRUE(torch::equal(lazy.value, cut.value));
    EXPECT_TRUE(torch::equal(lazy.average, cut.average));
    EXPECT_EQ(lazy.gradient.abs().max().item<float>(), 0);
  });
}

TEST(Update, RoundsToHalfAsTorch) {
  for_each_isa([] {
    State state(1000);
    torch::Tensor half = torch::empty({1000}, torch::kHalf);
    UpdateArrays arrays = state.arrays();
    arrays.bf16 = nullptr;
    arrays.fp16 = static_cast<Fp16*>(half.data_ptr());
    state.gradient.copy_(gradient_of_step(1000, 1));
    adam_step(arrays, {}, 0, 1000);
    EXPECT_TRUE(torch::equal(half, state.value.to(torch::kHalf)));
  });
}

TEST(SumOfSquares, IsExactEnoughAndTheSameForAnyThreads) {
  at::Generator generator = at::detail::createCPUGenerator(3);
  torch::Tensor x = torch::randn({300001}, generator, torch::kFloat) * 1e3;
  const double expected = x.to(torch::kDouble).square().sum().item<double>();
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const double one = sum_of_squares(x.const_data_ptr<float>(), x.numel());
  at::set_num_threads(2);
  const double two = sum_of_squares(x.const_data_ptr<float>(), x.numel());
  at::set_num_threads(before);
  EXPECT_NEAR(one / expected, 1, 1e-12);
  EXPECT_EQ(one, two);
  EXPECT_EQ(sum_of_squares(nullptr, 0), 0);
}

TEST(WeightedRows, AreTheProductOfAMatrix) {
  at::Generator generator = at::detail::createCPUGenerator(4);
  for_each_isa([&] {
    for (int64_t width : {1, 15, 64, 1003}) {
      torch::Tensor weights = torch::randn({5}, generator),
                    rows = torch::randn({5, width}, generator);
      torch::Tensor out = torch::empty({width});
      kernels().weighted_rows({weights.const_data_ptr<float>(), rows.const_data_ptr<float>(), 5,
                               width, out.mutable_data_ptr<float>()});
      EXPECT_LT(largest_difference(out, torch::mv(rows.t(), weights)), 1e-5) << width;
    }
  });
}

// Ranks on unlike processors must not drift apart.
TEST(Update, HasTheSameBitsInEveryInstructionSet) {
  constexpr int64_t kCount = 1003;  // a remainder in all of them
  at::Generator generator = at::detail::createCPUGenerator(5);
  const torch::Tensor weights = torch::randn({4}, generator);
  std::vector<std::vector<torch::Tensor>> found;
  for_each_isa([&] {
    State adam(kCount), momentum(kCount);
    for (int64_t i = 1; i <= 5; ++i) {
      AdamStep step;
      step.step = i;
      step.weight_decay = 0.01;
      step.gradient_scale = 0.7;
      step.average_decay = 0.9;
      adam.gradient.copy_(gradient_of_step(kCount, i));
      adam_step(adam.arrays(), step, 0, kCount);
      MomentumStep other;
      other.lr = 0.1;
      other.decay = 0.9;
      other.nesterov = true;
      other.weight_decay = 0.01;
      other.average_decay = 0.9;
      momentum.gradient.copy_(gradient_of_step(kCount, i));
      momentum_step(momentum.arrays(), other, 0, kCount);
    }
    torch::Tensor sum = torch::full({1}, sum_of_squares(adam.value.const_data_ptr<float>(), kCount),
                                    torch::kDouble);
    torch::Tensor row = torch::empty({kCount / 4});
    kernels().weighted_rows({weights.const_data_ptr<float>(), adam.m.const_data_ptr<float>(), 4,
                             kCount / 4, row.mutable_data_ptr<float>()});
    found.push_back({adam.value, adam.m, adam.v, adam.average, momentum.value, momentum.m,
                     momentum.average, sum, row});
  });
  for (const std::vector<torch::Tensor>& arrays : found) {
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      EXPECT_TRUE(torch::equal(arrays[i], found.front()[i])) << "array " << i;
    }
  }
}

TEST(SumOfSquares, IsFiniteExactlyWhenAllElementsAre) {
  torch::Tensor x = torch::full({40000}, 3e38f);
  EXPECT_TRUE(std::isfinite(sum_of_squares(x.const_data_ptr<float>(), x.numel())));
  for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                    std::numeric_limits<float>::quiet_NaN()}) {
    x[33333] = bad;
    EXPECT_FALSE(std::isfinite(sum_of_squares(x.const_data_ptr<float>(), x.numel())));
  }
}

}  // namespace
}  // namespace lockstep
