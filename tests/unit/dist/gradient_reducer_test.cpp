#include "dist/gradients/gradient_reducer.h"

#include <gtest/gtest.h>
#include <torch/autograd.h>

#include <memory>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace lockstep {
namespace {

// Weights whose gradients are views of one flat array, as the trainer lays them out.
struct FlatWeights {
  torch::Tensor gradients;
  std::vector<ReducedParameter> parameters;

  explicit FlatWeights(const std::vector<std::vector<int64_t>>& shapes) {
    torch::manual_seed(1);
    int64_t total = 0;
    for (const auto& shape : shapes) {
      torch::Tensor w = (torch::randn(shape) * 0.1).requires_grad_();
      parameters.push_back({w, total, w.numel()});
      total += w.numel();
    }
    gradients = torch::zeros({total});
    for (const ReducedParameter& p : parameters) {
      torch::Tensor variable = p.variable;
      variable.mutable_grad() = gradients.narrow(0, p.offset, p.numel).view(p.variable.sizes());
    }
  }

  const torch::Tensor& weight(std::size_t i) const { return parameters[i].variable; }
};

// Layers of 64 x 64 with biases: 16,640 bytes a layer.
std::vector<std::vector<int64_t>> layer_shapes(int layers) {
  std::vector<std::vector<int64_t>> shapes;
  for (int i = 0; i < layers; ++i) {
    shapes.push_back({64, 64});
    shapes.push_back({64});
  }
  return shapes;
}

torch::Tensor loss_of(const FlatWeights& w, const torch::Tensor& input) {
  torch::Tensor x = input;  // [batch, 64]
  for (std::size_t i = 0; i + 1 < w.parameters.size(); i += 2) {
    x = torch::tanh(torch::linear(x, w.weight(i), w.weight(i + 1)));
  }
  return x.square().sum();
}

// [batch, 64], different on every rank.
torch::Tensor input_of(int rank) {
  torch::manual_seed(100 + rank);
  return torch::randn({8, 64});
}

// What the reducer must arrive at: all ranks' gradients computed here and added.
torch::Tensor expected_sum(int ranks, int layers) {
  FlatWeights w(layer_shapes(layers));
  for (int r = 0; r < ranks; ++r) loss_of(w, input_of(r)).backward();
  return w.gradients;
}

constexpr ReducerOptions kSmallBuckets{20000, 5000};

TEST(GradientReducer, SumsOverAllRanksWhileTheBackwardPassRuns) {
  for (int ranks : {2, 3}) {
    expect_all_well(run_ranks(ranks, [ranks](World& world) {
      FlatWeights w(layer_shapes(6));
      auto hook = make_comm_hook(world, {"none"});
      GradientReducer reducer(world, *hook, w.parameters, w.gradients, kSmallBuckets);
      EXPECT_GT(reducer.bucket_count(), 4);
      for (int step = 0; step < 3; ++step) {
        w.gradients.zero_();
        reducer.prepare(true);
        loss_of(w, input_of(world.rank())).backward();
        ReduceTimings t = reducer.finish();
        // Only the rounding of another order of addition may differ.
        EXPECT_TRUE(torch::allclose(w.gradients, expected_sum(ranks, 6), 1e-5, 1e-6));
        EXPECT_EQ(t.buckets, reducer.bucket_count());
        EXPECT_EQ(t.overlapped_buckets, t.buckets);
        EXPECT_EQ(t.bytes, w.gradients.numel() * 4);
      }
    }));
  }
}

TEST(GradientReducer, GivesTheSameBitsForAnyCutsWithTwoRanks) {
  expect_all_well(run_ranks(2, [](World& world) {
    std::vector<torch::Tensor> results;
    for (ReducerOptions options : {kSmallBuckets, ReducerOptions{256, 256}, ReducerOptions{}}) {
      FlatWeights w(layer_shapes(3));
      auto hook = make_comm_hook(world, {"none"});
      GradientReducer reducer(world, *hook, w.parameters, w.gradients, options);
      reducer.prepare(true);
      loss_of(w, input_of(world.rank())).backward();
      reducer.finish();
      results.push_back(w.gradients);
    }
    EXPECT_TRUE(torch::equal(results[0], results[1]));
    EXPECT_TRUE(torch::equal(results[0], results[2]));
  }));
}

TEST(GradientReducer, AccumulatesWithoutTalkingUntilAsked) {
  expect_all_well(run_ranks(2, [](World& world) {
    FlatWeights w(layer_shapes(2));
    auto hook = make_comm_hook(world, {"none"});
    GradientReducer reducer(world, *hook, w.parameters, w.gradients, kSmallBuckets);
    uint64_t before = world.last_operation().sequence;
    reducer.prepare(false);
    loss_of(w, input_of(2 * world.rank())).backward();
    EXPECT_EQ(reducer.finish().buckets, 0);
    EXPECT_EQ(world.last_operation().sequence, before);
    reducer.prepare(true);
    loss_of(w, input_of(2 * world.rank() + 1)).backward();
    reducer.finish();
    EXPECT_TRUE(torch::allclose(w.gradients, expected_sum(4, 2), 1e-5, 1e-6));
  }));
}

TEST(GradientReducer, ReducesParametersThatOnlyOneRankUsed) {
  expect_all_well(run_ranks(2, [](World& world) {
    FlatWeights w({{300}, {300}, {300}});
    auto hook = make_comm_hook(world, {"none"});
    GradientReducer reducer(world, *hook, w.parameters, w.gradients, {256, 256});
    for (int step = 0; step < 2; ++step) {
      w.gradients.zero_();
      reducer.prepare(true);
      torch::Tensor loss = w.weight(0).sum();
      if (world.rank() == 1) loss = loss + 2 * w.weight(1).sum();
      loss.backward();
      ReduceTimings t = reducer.finish();
      EXPECT_EQ(t.overlapped_buckets, 0);  // nothing ever marks the last parameter
      EXPECT_TRUE(w.gradients.narrow(0, 0, 300).eq(2).all().item<bool>());
      EXPECT_TRUE(w.gradients.narrow(0, 300, 300).eq(2).all().item<bool>());
      EXPECT_TRUE(w.gradients.narrow(0, 600, 300).eq(0).all().item<bool>());
    }
  }));
}

TEST(GradientReducer, WaitsForAllUsesOfATiedParameter) {
  expect_all_well(run_ranks(2, [](World& world) {
    FlatWeights w({{64, 64}, {64, 64}});
    auto hook = make_comm_hook(world, {"none"});
    GradientReducer reducer(world, *hook, w.parameters, w.gradients, {4096, 4096});
    reducer.prepare(true);
    torch::Tensor x = torch::eye(64);
    // The second parameter is used first and last.
    torch::Tensor loss = x.matmul(w.weight(1)).matmul(w.weight(0)).matmul(w.weight(1)).sum();
    loss.backward();
    ReduceTimings t = reducer.finish();
    EXPECT_EQ(t.overlapped_buckets, t.buckets);
    FlatWeights alone({{64, 64}, {64, 64}});
    (2 * x.matmul(alone.weight(1)).matmul(alone.weight(0)).matmul(alone.weight(1)).sum())
        .backward();
    EXPECT_TRUE(torch::allclose(w.gradients, alone.gradients, 1e-5, 1e-5));
  }));
}

// y = 3 w, adding the gradient straight into w.grad() and returning none, as fused kernels do.
struct InPlaceTriple : torch::autograd::Function<InPlaceTriple> {
  static torch::Tensor forward(torch::autograd::AutogradContext* context, const torch::Tensor& w) {
    context->save_for_backward({w});
    return w * 3;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    torch::Tensor w = context->get_saved_variables()[0];
    w.mutable_grad().add_(gradients[0], 3);
    return {torch::Tensor()};
  }
};

TEST(GradientReducer, SeesGradientsThatBackwardFunctionsWroteThemselves) {
  expect_all_well(run_ranks(2, [](World& world) {
    FlatWeights w({{500}, {700}});
    auto hook = make_comm_hook(world, {"none"});
    GradientReducer reducer(world, *hook, w.parameters, w.gradients, {512, 512});
    reducer.prepare(true);
    (InPlaceTriple::apply(w.weight(0)).sum() + InPlaceTriple::apply(w.weight(1)).sum()).backward();
    ReduceTimings t = reducer.finish();
    EXPECT_EQ(t.overlapped_buckets, t.buckets);
    EXPECT_TRUE(w.gradients.eq(6).all().item<bool>());
  }));
}

TEST(GradientReducer, RegistersNothingForOneRank) {
  World world(LaunchEnvironment{}, {});
  FlatWeights w(layer_shapes(2));
  auto hook = make_comm_hook(world, {"none"});
  GradientReducer reducer(world, *hook, w.parameters, w.gradients, {});
  reducer.prepare(true);
  loss_of(w, input_of(0)).backward();
  EXPECT_EQ(reducer.finish().buckets, 0);
  for (const ReducedParameter& p : w.parameters) {
    auto node = torch::autograd::impl::try_get_grad_accumulator(p.variable);
    EXPECT_TRUE(!node || node->post_hooks().empty());
  }
}

TEST(GradientReducer, RefusesASecondBackwardPassWithoutPreparation) {
  auto results = run_ranks(2, [](World& world) {
    FlatWeights w(layer_shapes(1));
    auto hook = make_comm_hook(world, {"none"});
    GradientReducer reducer(world, *hook, w.parameters, w.gradients, {});
    reducer.prepare(true);
    loss_of(w, input_of(0)).backward();
    if (world.rank() == 0) loss_of(w, input_of(0)).backward();
    reducer.finish();
    world.barrier();  // rank 1 is still there when rank 0 fails
  });
  EXPECT_EQ(results[0].exit_code, kExitInternal);
  EXPECT_NE(results[0].text.find("prepare() belongs before each"), std::string::npos);
}

TEST(CommHook, Bf16StaysWithinItsRounding) {
  for (int ranks : {2, 3}) {
    expect_all_well(run_ranks(ranks, [ranks](World& world) {
      FlatWeights w(layer_shapes(4));
      auto hook = make_comm_hook(world, {"bf16"});
      GradientReducer reducer(world, *hook, w.parameters, w.gradients, kSmallBuckets);
      for (int step = 0; step < 2; ++step) {
        w.gradients.zero_();
        reducer.prepare(true);
        loss_of(w, input_of(world.rank())).backward();
        reducer.finish();
      }
      torch::Tensor exact = expected_sum(ranks, 4);
      EXPECT_FALSE(torch::equal(w.gradients, exact));
      // 2^-9 of each addend and of each partial sum, all below the largest gradient times `ranks`.
      double bound = 2.0 * ranks * exact.abs().max().item<double>() / 512;
      EXPECT_LT((w.gradients - exact).abs().max().item<double>(), bound);
      auto all = world.all_gather_strings(std::string(
          static_cast<const char*>(w.gradients.const_data_ptr()), w.gradients.nbytes()));
      EXPECT_EQ(all[0], all[1]);
    }));
  }
}

TEST(CommHook, UnknownNameIsAnErrorThatNamesTheNearest) {
  World world(LaunchEnvironment{}, {});
  try {
    make_comm_hook(world, {"bf61"});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "comm.hook: no comm hook \"bf61\"; did you mean bf16? (none, bf16, fp16, powersgd)");
  }
}

}  // namespace
}  // namespace lockstep
