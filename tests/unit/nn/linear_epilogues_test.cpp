#include "nn/linear_epilogues.h"

#include "op_testing.h"

namespace lockstep {
namespace {

// Weight, bias, weight and bias of the norm.
struct Block {
  TestParameters p;
  Linear layer;
  LayerNorm norm;
  Block(int64_t in, int64_t out)
      : p({{out, in}, {out}, {out}, {out}}), layer{p[0], p[1]}, norm{p[2], p[3]} {}
};

// Both results of a residual block in one tensor, so that both hand a gradient back.
torch::Tensor joined(const ResidualNorm& out) {
  return torch::cat({out.stream, out.normed.to(torch::kFloat)}, 1);
}

TEST(LinearRelu, FusedEqualsPlain) {
  for (double p : {0.0, 0.1, 0.5}) {
    for (int64_t width : {1, 3, 17, 64, 257}) {
      for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
        const int64_t rows = width == 3 ? 1 : 70;
        Block block(20, width);
        const Dropout dropout = test_dropout(p, rows);
        Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
          return linear_relu(in[0], block.layer, dropout, numerics);
        };
        if (compute == at::kBFloat16) {  // rounding must not carry a sum over zero
          torch::NoGradGuard no_grad;
          block.layer.bias->low.copy_(torch::arange(width) % 2 * 80 - 40);
          block.p[1]->value.copy_(block.layer.bias->low);
        }
        expect_fused_equals_plain(operation, {random_tensor({rows, 20}, 1, compute)}, &block.p,
                                  compute, {2e-5, 3e-2});
      }
    }
  }
}

TEST(LinearRelu, PassesNanOn) {
  Block block(4, 40);
  torch::Tensor x = torch::full({1, 4}, std::numeric_limits<float>::quiet_NaN());
  for_each_isa(
      [&] { EXPECT_TRUE(linear_relu(x, block.layer, {}, {}).isnan().all().item<bool>()); });
}

TEST(LinearGelu, FusedEqualsPlain) {
  for (double p : {0.0, 0.1, 0.5}) {
    for (int64_t width : {1, 3, 17, 64, 257}) {
      for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
        const int64_t rows = width == 3 ? 1 : 70;
        Block block(20, width);
        const Dropout dropout = test_dropout(p, rows);
        Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
          return linear_gelu(in[0], block.layer, dropout, numerics);
        };
        expect_fused_equals_plain(operation, {random_tensor({rows, 20}, 1, compute)}, &block.p,
                                  compute, {2e-5, 3e-2});
      }
    }
  }
}

TEST(LinearSilu, FusedEqualsPlain) {
  for (double p : {0.0, 0.3}) {
    for (int64_t width : {3, 257}) {
      for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
        Block block(20, width);
        const Dropout dropout = test_dropout(p, 70);
        Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
          return linear_silu(in[0], block.layer, dropout, numerics);
        };
        expect_fused_equals_plain(operation, {random_tensor({70, 20}, 1, compute)}, &block.p,
                                  compute, {2e-5, 3e-2});
      }
    }
  }
}

TEST(LinearGelu, GivesTheSameWithoutGradients) {
  Block block(20, 257);
  const Dropout dropout = test_dropout(0.1, 70);
  for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    const torch::Tensor x = random_tensor({70, 20}, 1, compute);
    const torch::Tensor trained = linear_gelu(x, block.layer, dropout, {compute});
    torch::NoGradGuard no_grad;
    EXPECT_TRUE(torch::equal(linear_gelu(x, block.layer, dropout, {compute}), trained));
  }
}

TEST(LinearGelu, PassesNanOn) {
  Block block(4, 40);
  torch::Tensor x = torch::full({1, 4}, std::numeric_limits<float>::quiet_NaN());
  for_each_isa(
      [&] { EXPECT_TRUE(linear_gelu(x, block.layer, {}, {}).isnan().all().item<bool>()); });
}

TEST(LinearResidualNorm, ScalesRowsOfTheBranch) {
  for (double p : {0.0, 0.1}) {
    for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      Block block(20, 33);
      BranchDropout dropout = test_dropout(p, 9);
      dropout.row_scale = torch::tensor({0.0f, 1.25f, 1.25f, 0.0f, 2.0f, 1.0f, 0.0f, 1.25f, 0.5f});
      Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
        return joined(
            linear_residual_norm(in[0], in[1], block.layer, dropout, block.norm, numerics));
      };
      const torch::Tensor residual = random_tensor({9, 33}, 1);
      expect_fused_equals_plain(operation, {residual, random_tensor({9, 20}, 2, compute)}, &block.p,
                                compute, {2e-4, 3e-2});
      const torch::Tensor out =
          operation({residual, random_tensor({9, 20}, 2, compute)}, {compute});
      EXPECT_TRUE(torch::equal(out[0].narrow(0, 0, 33), residual[0]));  // left out
      EXPECT_FALSE(torch::equal(out[1].narrow(0, 0, 33), residual[1]));
    }
  }
}

TEST(LinearResidualNorm, FusedEqualsPlain) {
  for (double p : {0.0, 0.1, 0.5}) {
    for (int64_t width : {3, 17, 64, 257}) {
      for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
        const int64_t rows = width == 17 ? 1 : 70;
        Block block(20, width);
        const Dropout dropout = test_dropout(p, rows);
        Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
          return joined(
              linear_residual_norm(in[0], in[1], block.layer, dropout, block.norm, numerics));
        };
        expect_fused_equals_plain(
            operation, {random_tensor({rows, width}, 1) * 2, random_tensor({rows, 20}, 2, compute)},
            &block.p, compute, {2e-4, 3e-2});
      }
    }
  }
}

TEST(LinearResidualNorm, FusedEqualsPlainWithoutABias) {
  for (double p : {0.0, 0.1}) {
    for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      Block block(20, 257);
      block.layer.bias = nullptr;
      const Dropout dropout = test_dropout(p, 70);
      Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
        return joined(
            linear_residual_norm(in[0], in[1], block.layer, dropout, block.norm, numerics));
      };
      expect_fused_equals_plain(
          operation, {random_tensor({70, 257}, 1) * 2, random_tensor({70, 20}, 2, compute)},
          &block.p, compute, {2e-4, 3e-2});
    }
  }
}

TEST(LinearResidualPostNorm, FusedEqualsPlain) {
  for (double p : {0.0, 0.1}) {
    for (int64_t width : {3, 64, 257}) {
      for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
        Block block(20, width);
        const Dropout dropout = test_dropout(p, 70);
        Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
          return joined(
              linear_residual_post_norm(in[0], in[1], block.layer, dropout, block.norm, numerics));
        };
        expect_fused_equals_plain(
            operation, {random_tensor({70, width}, 1) * 2, random_tensor({70, 20}, 2, compute)},
            &block.p, compute, {2e-4, 3e-2});
      }
    }
  }
}

TEST(LinearResidualPostNorm, KeepsTheStreamInFp32) {
  Block block(20, 33);
  torch::Tensor x = random_tensor({9, 20}, 1, at::kBFloat16), residual = random_tensor({9, 33}, 2);
  for (bool fused : {true, false}) {
    const ResidualNorm out =
        linear_residual_post_norm(residual, x, block.layer, {}, block.norm, {at::kBFloat16, fused});
    ASSERT_EQ(out.stream.scalar_type(), at::kFloat);
    EXPECT_FALSE(torch::equal(out.stream, out.stream.to(at::kBFloat16).to(at::kFloat)));
    EXPECT_TRUE(torch::equal(out.normed, out.stream.to(at::kBFloat16)));
  }
}

TEST(LinearResidualNorm, TakesAGradientOfEitherResultAlone) {
  Block block(20, 33);
  const Dropout dropout = test_dropout(0.2, 9);
  for (bool stream : {true, false}) {
    Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
      ResidualNorm out =
          linear_residual_norm(in[0], in[1], block.layer, dropout, block.norm, numerics);
      return stream ? out.stream : out.normed;
    };
    expect_fused_equals_plain(operation, {random_tensor({9, 33}, 1), random_tensor({9, 20}, 2)},
                              &block.p, at::kFloat, {2e-4, 3e-2});
  }
}

TEST(LinearResidualPostNorm, TakesAGradientOfEitherResultAlone) {
  Block block(20, 33);
  const Dropout dropout = test_dropout(0.2, 70);
  for (bool stream : {true, false}) {
    Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
      ResidualNorm out =
          linear_residual_post_norm(in[0], in[1], block.layer, dropout, block.norm, numerics);
      return stream ? out.stream : out.normed;
    };
    for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
      expect_fused_equals_plain(operation,
                                {random_tensor({70, 33}, 1), random_tensor({70, 20}, 2, compute)},
                                &block.p, compute, {2e-4, 3e-2});
    }
  }
}

TEST(LinearResidualNorm, DoesNotDependOnTheNumberOfThreads) {
  Block block(48, 130);
  const Dropout dropout = test_dropout(0.3, 500);
  Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
    return joined(linear_residual_norm(in[0], in[1], block.layer, dropout, block.norm, numerics)) +
           joined({in[0], linear_relu(in[1], block.layer, dropout, numerics)});
  };
  auto run = [&](int threads) {
    Threads scope(threads);
    return run_operation(operation, {random_tensor({500, 130}, 1), random_tensor({500, 48}, 2)},
                         &block.p, {});
  };
  const Outcome one = run(1);
  for (int threads : {2, 3}) {
    const Outcome other = run(threads);
    EXPECT_TENSORS_CLOSE(other.values[0], one.values[0], 1e-6);  // the product may be cut elsewhere
    for (std::size_t i = 0; i < one.gradients.size(); ++i) {
      EXPECT_TENSORS_CLOSE(other.gradients[i], one.gradients[i], 1e-5);
    }
  }
}

TEST(LinearResidualNorm, RefusesShapesThatDoNotMatch) {
  Block block(20, 33);
  torch::Tensor x = random_tensor({9, 20}, 1), residual = random_tensor({9, 33}, 2);
  EXPECT_THROW(linear_residual_norm(residual, x, block.layer, test_dropout(0.1, 5), block.norm, {}),
               c10::Error);
  EXPECT_THROW(linear_residual_norm(x, x, block.layer, {}, block.norm, {}), c10::Error);
  EXPECT_THROW(linear_relu(residual, block.layer, {}, {}), c10::Error);
}

TEST(Numerics, RunsSingleOperationsPlain) {
  Numerics numerics;
  numerics.plain = 1u << static_cast<int>(FusedOperation::kAttention);
  EXPECT_FALSE(numerics.is_fused(FusedOperation::kAttention));
  EXPECT_TRUE(numerics.is_fused(FusedOperation::kLinear));
  numerics.fused = false;
  EXPECT_FALSE(numerics.is_fused(FusedOperation::kLinear));
}

}  // namespace
}  // namespace lockstep
