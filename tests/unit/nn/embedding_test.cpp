#include "nn/embedding.h"

#include <cmath>

#include "op_testing.h"

namespace lockstep {
namespace {

EmbeddingInput test_input(int64_t rows, int64_t vocabulary) {
  // Few distinct tokens: many rows add into the same entry.
  torch::Tensor index = torch::arange(rows, torch::kInt64);
  return {(index * 7 % vocabulary).contiguous(), (index % 10).contiguous()};
}

TEST(Embedding, PositionsAreThoseOfThePaper) {
  torch::Tensor table = sinusoidal_positions(50, 6, torch::kCPU);
  for (int64_t position : {0, 1, 49}) {
    for (int64_t i = 0; i < 3; ++i) {
      double angle = position / std::pow(10000.0, 2.0 * static_cast<double>(i) / 6);
      EXPECT_NEAR(table[position][2 * i].item<float>(), std::sin(angle), 1e-6);
      EXPECT_NEAR(table[position][2 * i + 1].item<float>(), std::cos(angle), 1e-6);
    }
  }
  EXPECT_EQ(sinusoidal_positions(4, 5, torch::kCPU).size(1), 5);
}

TEST(Embedding, FusedEqualsPlain) {
  for (double p : {0.0, 0.2}) {
    for (int64_t width : {3, 17, 64, 257}) {
      const int64_t rows = width == 17 ? 1 : 300;
      TestParameters parameters({{11, width}});
      torch::Tensor positions = sinusoidal_positions(10, width, torch::kCPU);
      const EmbeddingInput input = test_input(rows, 11);
      const Dropout dropout = test_dropout(p, rows);
      Operation operation = [&](const std::vector<torch::Tensor>&, const Numerics& numerics) {
        return embed(input, *parameters[0], positions, dropout, numerics);
      };
      expect_fused_equals_plain(operation, {}, &parameters, at::kFloat);
    }
  }
}

// As BERT's: unscaled words, and positions that learn.
TEST(Embedding, LearnedPositionsGetTheirGradient) {
  for (double p : {0.0, 0.2}) {
    TestParameters parameters({{11, 20}});
    EmbeddingInput input = test_input(90, 11);
    input.scale = 1;
    const Dropout dropout = test_dropout(p, 90);
    Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
      return embed(input, *parameters[0], in[0], dropout, numerics);
    };
    expect_fused_equals_plain(operation, {random_tensor({10, 20}, 4)}, &parameters, at::kFloat);
    if (p > 0) continue;
    const torch::Tensor positions = random_tensor({10, 20}, 4);
    const torch::Tensor out = embed(input, *parameters[0], positions, {}, {});
    EXPECT_TENSORS_CLOSE(out[12], parameters[0]->value[12 * 7 % 11] + positions[2], 1e-6);
  }
}

TEST(Embedding, DropoutBehindANorm) {
  for (double p : {0.0, 0.3}) {
    const Dropout dropout = test_dropout(p, 70);
    Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
      return embedding_dropout(in[0], dropout, numerics);
    };
    expect_fused_equals_plain(operation, {random_tensor({70, 33}, 1)}, nullptr, at::kFloat);
  }
}

TEST(Embedding, GradientDoesNotDependOnTheNumberOfThreads) {
  TestParameters parameters({{5, 300}});
  torch::Tensor positions = sinusoidal_positions(10, 300, torch::kCPU);
  const EmbeddingInput input = test_input(700, 5);
  const Dropout dropout = test_dropout(0.1, 700);
  Operation operation = [&](const std::vector<torch::Tensor>&, const Numerics& numerics) {
    return embed(input, *parameters[0], positions, dropout, numerics);
  };
  auto run = [&](int threads) {
    Threads scope(threads);
    return run_operation(operation, {}, &parameters, {}).gradients[0];
  };
  torch::Tensor one = run(1);
  EXPECT_TRUE(torch::equal(one, run(2)));
  EXPECT_TRUE(torch::equal(one, run(3)));
}

TEST(Embedding, PositionsInHalvesAreThoseOfTensor2Tensor) {
  torch::Tensor table = sinusoidal_positions(50, 6, torch::kCPU, PositionLayout::kHalves);
  for (int64_t position : {0, 1, 49}) {
    for (int64_t i = 0; i < 3; ++i) {
      double angle = position / std::pow(10000.0, static_cast<double>(i) / 2);
      EXPECT_NEAR(table[position][i].item<float>(), std::sin(angle), 1e-6);
      EXPECT_NEAR(table[position][3 + i].item<float>(), std::cos(angle), 1e-6);
    }
  }
}

TEST(Embedding, TheZeroTokenIsAVectorOfZerosWithoutAGradient) {
  for (double p : {0.0, 0.2}) {
    TestParameters parameters({{11, 17}});
    torch::Tensor positions = sinusoidal_positions(10, 17, torch::kCPU);
    EmbeddingInput input = test_input(30, 11);
    input.tokens.masked_fill_(input.position == 0, kZeroToken);
    const Dropout dropout = test_dropout(p, 30);
    Operation operation = [&](const std::vector<torch::Tensor>&, const Numerics& numerics) {
      return embed(input, *parameters[0], positions, dropout, numerics);
    };
    expect_fused_equals_plain(operation, {}, &parameters, at::kFloat);
    if (p > 0) continue;
    torch::Tensor out = embed(input, *parameters[0], positions, dropout, {});
    EXPECT_TRUE(torch::equal(out[0], positions[0]));
  }
}

TEST(Embedding, RefusesATokenOutsideTheTable) {
  TestParameters parameters({{5, 4}});
  torch::Tensor positions = sinusoidal_positions(3, 4, torch::kCPU);
  EmbeddingInput input{torch::tensor({int64_t{5}}), torch::tensor({int64_t{0}})};
  EXPECT_THROW(embed(input, *parameters[0], positions, {}, {}), c10::IndexError);
  input = {torch::tensor({int64_t{-2}}), torch::tensor({int64_t{0}})};
  EXPECT_THROW(embed(input, *parameters[0], positions, {}, {}), c10::IndexError);
  input = {torch::tensor({int64_t{0}}), torch::tensor({int64_t{-1}})};
  EXPECT_THROW(embed(input, *parameters[0], positions, {}, {}), c10::IndexError);
}

}  // namespace
}  // namespace lockstep
