#include "optim/optimizers/loss_scaler.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

LossScaler make_scaler(const char* name, int64_t window = 3) {
  LossScaleConfig config;
  config.name = name;
  config.window = window;
  return LossScaler(config);
}

TEST(LossScaler, BackoffHalvesAndGrowsUpToItsStart) {
  LossScaler scaler = make_scaler("backoff");
  EXPECT_EQ(scaler.scale(), 16384);
  EXPECT_TRUE(scaler.update(true));
  EXPECT_TRUE(scaler.update(true));
  EXPECT_EQ(scaler.scale(), 4096);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(scaler.update(false));
  EXPECT_EQ(scaler.scale(), 4096);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 8192);
  for (int i = 0; i < 9; ++i) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 16384);  // the largest
}

TEST(LossScaler, BackoffGivesUpAtOne) {
  LossScaler scaler = make_scaler("backoff");
  for (int i = 0; i < 14; ++i) EXPECT_TRUE(scaler.update(true)) << i;
  EXPECT_EQ(scaler.scale(), 1);
  EXPECT_FALSE(scaler.update(true));
}

// https://docs.pytorch.org: init_scale 65536, growth_factor 2, backoff_factor 0.5, interval 2000.
TEST(LossScaler, TorchGrowsWithoutLimitAndApexTo2To24) {
  LossScaler torch = make_scaler("torch", 1), apex = make_scaler("apex", 1);
  EXPECT_EQ(torch.scale(), 65536);
  EXPECT_EQ(apex.scale(), 65536);
  for (int i = 0; i < 20; ++i) {
    torch.update(false);
    apex.update(false);
  }
  EXPECT_EQ(torch.scale(), std::ldexp(65536, 20));
  EXPECT_EQ(apex.scale(), std::ldexp(1, 24));
  apex.update(true);
  EXPECT_EQ(apex.scale(), std::ldexp(1, 23));
}

TEST(LossScaler, ItsWindowIs2000) {
  LossScaleConfig config;
  config.name = "torch";
  LossScaler scaler(config);
  for (int i = 0; i < 1999; ++i) scaler.update(false);
  EXPECT_EQ(scaler.scale(), 65536);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 131072);
}

// A gradient of constant size 2^6 has no deviation: 16 - 6 = 10.
TEST(LossScaler, LogMaxLeavesRoomAboveTheLargestGradient) {
  LossScaler scaler = make_scaler("log_max");
  EXPECT_EQ(scaler.scale(), 1);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(scaler.update(false, 64));
  EXPECT_NEAR(scaler.scale(), 1024, 1e-6);
  // Mean 6 and deviation 2 of the logarithms: 16 - (6 + 3.09 * 2) = 3.82, but for the first steps.
  for (int i = 0; i < 500; ++i) scaler.update(false, i % 2 == 0 ? 16 : 256);
  EXPECT_NEAR(scaler.scale(), std::exp2(3.82), 0.3);
}

TEST(LossScaler, LogMaxShrinksAtAnOverflow) {
  LossScaler scaler = make_scaler("log_max");
  for (int i = 0; i < 2000; ++i) scaler.update(false, 1e-3);
  double before = scaler.scale();
  EXPECT_EQ(before, 16384);
  EXPECT_TRUE(scaler.update(true));
  EXPECT_LE(scaler.scale(), before / 2);
}

TEST(LossScaler, StaticStaysAndGivesUpAfterTenOverflowsInARow) {
  LossScaleConfig config;
  config.name = "static";
  config.initial = 128;
  LossScaler scaler(config);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(scaler.update(true));
  EXPECT_TRUE(scaler.update(false));
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(scaler.update(true));
  EXPECT_FALSE(scaler.update(true));
  EXPECT_EQ(scaler.scale(), 128);
}

TEST(LossScaler, GoesOnFromItsState) {
  for (const char* name : {"backoff", "apex", "torch", "log_max", "static"}) {
    LossScaler whole = make_scaler(name, 5), first = make_scaler(name, 5),
               second = make_scaler(name, 5);
    auto step = [](LossScaler& scaler, int i) { scaler.update(i % 7 == 3, std::exp2(i % 5)); };
    for (int i = 0; i < 40; ++i) step(whole, i);
    for (int i = 0; i < 17; ++i) step(first, i);
    second.set_state(first.state());
    for (int i = 17; i < 40; ++i) step(second, i);
    EXPECT_EQ(second.scale(), whole.scale()) << name;
    EXPECT_EQ(second.state(), whole.state()) << name;
  }
}

}  // namespace
}  // namespace lockstep
