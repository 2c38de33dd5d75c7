#include "dist/account/exchange_model.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// R1's Transformer-base, 4 machines: 2 (4 - 1) / 4 of 260 MB each way.
TEST(ExchangeModel, EachHostSendsItsShareOfASum) {
  EXPECT_DOUBLE_EQ(exchange_bytes(260e6, 1), 0);
  EXPECT_DOUBLE_EQ(exchange_bytes(260e6, 2), 260e6);
  EXPECT_DOUBLE_EQ(exchange_bytes(260e6, 4), 390e6);
}

TEST(ExchangeModel, ASumTakesItsTransferAndItsDelays) {
  EXPECT_DOUBLE_EQ(exchange_seconds(100, 1, {.latency_seconds = 1, .bytes_per_second = 50}), 0);
  EXPECT_DOUBLE_EQ(exchange_seconds(100, 2, {.latency_seconds = 1, .bytes_per_second = 50}), 3);
  EXPECT_DOUBLE_EQ(exchange_seconds(100, 4, {.latency_seconds = 1, .bytes_per_second = 50}), 5);
  // 260 MB between 2 nodes at 1 Gbit/s take 2.1 s.
  EXPECT_NEAR(exchange_seconds(260e6, 2, {.bytes_per_second = 125e6}), 2.08, 0.001);
}

}  // namespace
}  // namespace lockstep
