// What hooks make of gradients: their rounding, their overflow, their order, what they carry on.
#include "dist/gradients/comm_hooks.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/expect_says.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

const std::vector<GradientShape> kShapes{{0, 40, 32}, {1280, 40, 1}, {1328, 24, 48}};
constexpr int64_t kTotal = 1328 + 24 * 48;

torch::Tensor gradients_of(int rank, int step) {
  torch::manual_seed(100 * static_cast<uint64_t>(step) + static_cast<uint64_t>(rank));
  return torch::randn({kTotal});
}

// One step: a bucket that ends with the vector, and one more.
void reduce(CommHook& hook, const torch::Tensor& gradients, double unit) {
  torch::Tensor last = gradients.narrow(0, 1328, kTotal - 1328);
  torch::Tensor first = gradients.narrow(0, 0, 1328);
  Completion a = hook.start({0, last, 1328, unit});
  Completion b = hook.start({1, first, 0, unit});
  a();
  b();
}

CommHookConfig powersgd(int64_t rank, const std::string& hook = "powersgd") {
  CommHookConfig config{.hook = hook};
  config.powersgd.rank = rank;
  config.powersgd.start_step = 0;
  return config;
}

torch::Tensor sum_of(int ranks, int step) {
  torch::Tensor sum = gradients_of(0, step);
  for (int r = 1; r < ranks; ++r) sum += gradients_of(r, step);
  return sum;
}

TEST(CommHooks, RefuseNamesAndOrdersThatMakeNoSense) {
  auto check = [](const char* hook) { return CommHookConfig{.hook = hook}.check(); };
  EXPECT_EQ(check("none"), "");
  EXPECT_EQ(check("powersgd+bf16"), "");
  expect_says(check("powrsgd"), "did you mean powersgd?");
  expect_says(check("bf16+powersgd"), "comes first: powersgd+bf16");
  expect_says(check("bf16+fp16"), "one 16-bit format is enough");
  expect_says(check("bf16+bf16"), "bf16 twice");
  expect_says(check("none+bf16"), "none beside");
  expect_says(check(""), "no comm hook");
}

TEST(CommHooks, Fp16RoundsTo11BitsWhateverTheUnit) {
  expect_all_well(run_ranks(2, [](World& world) {
    auto hook = make_comm_hook(world, {"fp16"});
    for (double unit : {1e-6, 1.0, 2048.0, 1e7}) {
      torch::Tensor mine = gradients_of(world.rank(), 0) * unit;
      reduce(*hook, mine, unit);
      const double error = ((mine / unit - sum_of(2, 0)).abs().max()).item<double>();
      EXPECT_LT(error, 8 * 0x1p-11) << unit;  // of numbers up to 8, rounded twice
      EXPECT_GT(error, 0) << unit;
    }
  }));
}

TEST(CommHooks, Fp16SumsThatOverflowAreTakenAgainInFp32) {
  expect_all_well(run_ranks(2, [](World& world) {
    auto hook = make_comm_hook(world, {"fp16"});
    torch::Tensor mine = torch::full({kTotal}, 50000.0f);
    reduce(*hook, mine, 1024);
    EXPECT_TRUE(torch::equal(mine, torch::full({kTotal}, 100000.0f)));
    // What is not finite on one rank is not finite on all: the step guard must see it.
    mine = torch::ones({kTotal});
    if (world.rank() == 1) mine[3] = std::numeric_limits<float>::infinity();
    reduce(*hook, mine, 1024);
    EXPECT_TRUE(std::isinf(mine[3].item<float>()));
    EXPECT_EQ(mine[4].item<float>(), 2);
  }));
}

TEST(PowerSgd, MakesColumnsOrthonormalAndReplacesThoseThatDepend) {
  torch::manual_seed(1);
  torch::Tensor m = torch::randn({50, 4});
  m.select(1, 2).copy_(m.select(1, 0) * 3);
  m.select(1, 3).zero_();
  orthogonalize(m, 7);
  EXPECT_TRUE(torch::allclose(m.t().mm(m), torch::eye(4), 1e-5, 1e-6));
  m[3][1] = std::numeric_limits<float>::quiet_NaN();
  orthogonalize(m, 7);
  EXPECT_FALSE(std::isfinite(m.sum().item<double>()));
}

TEST(PowerSgd, KeepsMatricesOfItsRankAndVectorsWhole) {
  expect_all_well(run_ranks(2, [](World& world) {
    auto hook = make_comm_hook(world, powersgd(2), kShapes);
    torch::manual_seed(5);
    torch::Tensor expected = torch::zeros({kTotal});
    for (const GradientShape& p : kShapes) {
      torch::Tensor low_rank = torch::randn({p.rows, 2}).mm(torch::randn({2, p.columns}));
      expected.narrow(0, p.offset, p.numel()).copy_(low_rank.view({-1}));
    }
    torch::Tensor mine = expected * (world.rank() == 0 ? 0.25 : 0.75);
    reduce(*hook, mine, 10);
    EXPECT_TRUE(torch::allclose(mine, expected, 1e-4, 1e-4));
  }));
}

// What is left out of one step comes with the next ones: all that was sent approaches all that was.
TEST(PowerSgd, FeedsItsErrorsBackInUnitsOfTheMean) {
  expect_all_well(run_ranks(2, [](World& world) {
    auto hook = make_comm_hook(world, powersgd(2), kShapes);
    torch::Tensor sent = torch::zeros({kTotal}), meant = sum_of(2, 0);
    constexpr int kSteps = 60;
    for (int step = 0; step < kSteps; ++step) {
      const double unit = step % 2 == 0 ? 1 : 64;  // as a loss scale that changes
      torch::Tensor mine = gradients_of(world.rank(), 0) * unit;
      reduce(*hook, mine, unit);
      sent += mine / unit;
    }
    const double left_out = ((sent / kSteps - meant).norm() / meant.norm()).item<double>();
    EXPECT_LT(left_out, 0.35);  // a step alone leaves out 0.85 of random matrices
  }));
}

TEST(PowerSgd, AStepThatIsNotFiniteSpoilsNothing) {
  expect_all_well(run_ranks(2, [](World& world) {
    auto hook = make_comm_hook(world, powersgd(3), kShapes);
    torch::Tensor mine = gradients_of(world.rank(), 0);
    reduce(*hook, mine, 1);
    mine = gradients_of(world.rank(), 1);
    if (world.rank() == 0) mine[5] = std::numeric_limits<float>::infinity();
    reduce(*hook, mine, 1);
    EXPECT_FALSE(std::isfinite(mine.sum().item<double>()));
    mine = gradients_of(world.rank(), 2);
    reduce(*hook, mine, 1);
    EXPECT_TRUE(std::isfinite(mine.sum().item<double>()));
  }));
}

TEST(PowerSgd, GoesOnFromItsStateBitByBit) {
  expect_all_well(run_ranks(2, [](World& world) {
    auto hook = make_comm_hook(world, powersgd(3, "powersgd+bf16"), kShapes);
    auto after = make_comm_hook(world, powersgd(3, "powersgd+bf16"), kShapes);
    for (int step = 0; step < 3; ++step) reduce(*hook, gradients_of(world.rank(), step), 1);
    std::vector<HookArray> saved = hook->state(), taken = after->state();
    ASSERT_EQ(saved.size(), taken.size());
    for (std::size_t i = 0; i < saved.size(); ++i) taken[i].data.copy_(saved[i].data);
    after->restored();
    for (int step = 3; step < 6; ++step) {
      torch::Tensor a = gradients_of(world.rank(), step), b = a.clone();
      reduce(*hook, a, 1);
      reduce(*after, b, 1);
      EXPECT_TRUE(torch::equal(a, b));
    }
  }));
}

TEST(CommHooks, CountTheBytesThatTheyLeave) {
  const std::vector<GradientShape> parameters = {{0, 1000, 1000}, {1000000, 1000, 1}};
  CommHookConfig hooks;
  EXPECT_EQ(hooks.message_bytes(parameters), 4 * 1001000);
  hooks.hook = "bf16";
  EXPECT_EQ(hooks.message_bytes(parameters), 2 * 1001000);
  hooks.hook = "powersgd+fp16";
  hooks.powersgd.rank = 2;
  EXPECT_EQ(hooks.message_bytes(parameters), 2 * (2 * 2000 + 1000));
}

}  // namespace
}  // namespace lockstep
