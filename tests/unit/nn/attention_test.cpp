#include "nn/attention.h"

#include <torch/nn.h>

#include "op_testing.h"

namespace lockstep {
namespace {

struct AttentionShape {
  std::vector<int32_t> target, source;
  int64_t heads, width;
};

// Head widths 3 to 64; one token, one sentence, lengths around the blocks of 64 queries.
const std::vector<AttentionShape> kAttentionShapes = {
    {{1, 2}, {1, 2}, 1, 3},  // the gradient of one query at one key is zero
    {{5}, {9}, 2, 34},
    {{7, 1, 16, 33}, {2, 40, 1, 17}, 4, 64},
    {{64, 130}, {65, 3}, 2, 64},
    {{2, 3}, {150, 129}, 1, 64},
    {{100, 64, 197, 17}, {100, 96, 200, 65}, 2, 128},
};

TEST(Attention, SelfAttentionFusedEqualsPlain) {
  for (const AttentionShape& shape : kAttentionShapes) {
    for (double p : {0.0, 0.3}) {
      for (bool causal : {false, true}) {
        for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
          Segments segments = make_segments(shape.target, torch::kCPU);
          AttentionOptions options{shape.heads, causal, test_dropout(p, segments.tokens())};
          Operation operation = [&](const std::vector<torch::Tensor>& in,
                                    const Numerics& numerics) {
            return self_attention(in[0], segments, options, numerics);
          };
          expect_fused_equals_plain(
              operation, {random_tensor({segments.tokens(), 3 * shape.width}, 1, compute)}, nullptr,
              compute);
        }
      }
    }
  }
}

TEST(Attention, FirstTokenAttentionFusedEqualsPlainAndSelfAttention) {
  for (const AttentionShape& shape : kAttentionShapes) {
    for (double p : {0.0, 0.3}) {
      for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
        const Segments segments = make_segments(shape.target, torch::kCPU);
        const int64_t sentences = segments.sentences();
        std::vector<int64_t> rows(segments.offsets.begin(), segments.offsets.end() - 1);
        const torch::Tensor first = torch::tensor(rows);
        AttentionOptions options{shape.heads, false, test_dropout(p, segments.tokens())};
        AttentionOptions of_first = options;
        of_first.dropout.rows = options.dropout.rows.index_select(0, first);
        Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
          return first_token_attention(in[0], segments, of_first, numerics);
        };
        Operation whole = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
          return self_attention(in[0], segments, options, numerics).index_select(0, first);
        };
        const torch::Tensor qkv = random_tensor({segments.tokens(), 3 * shape.width}, 1, compute);
        expect_fused_equals_plain(operation, {qkv}, nullptr, compute);
        const Outcome one = run_operation(operation, {qkv}, nullptr, {compute});
        const Outcome all = run_operation(whole, {qkv}, nullptr, {compute});
        ASSERT_EQ(one.values[0].size(0), sentences);
        for (std::size_t i = 0; i < one.values.size(); ++i) {
          EXPECT_TENSORS_CLOSE(one.values[i], all.values[i], Tolerance{}.of(compute));
        }
      }
    }
  }
}

TEST(Attention, CrossAttentionFusedEqualsPlain) {
  for (const AttentionShape& shape : kAttentionShapes) {
    for (double p : {0.0, 0.3}) {
      for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
        Segments target = make_segments(shape.target, torch::kCPU);
        Segments source = make_segments(shape.source, torch::kCPU);
        AttentionOptions options{shape.heads, false, test_dropout(p, target.tokens())};
        Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
          return cross_attention(in[0], in[1], target, source, options, numerics);
        };
        expect_fused_equals_plain(operation,
                                  {random_tensor({target.tokens(), shape.width}, 1, compute),
                                   random_tensor({source.tokens(), 2 * shape.width}, 2, compute)},
                                  nullptr, compute);
      }
    }
  }
}

TEST(Attention, EqualsTorchsMultiheadAttention) {
  constexpr int64_t kWidth = 24, kHeads = 3, kTokens = 7;
  torch::nn::MultiheadAttention module(torch::nn::MultiheadAttentionOptions(kWidth, kHeads));
  torch::NoGradGuard no_grad;
  torch::Tensor x = random_tensor({kTokens, kWidth}, 1);
  torch::Tensor expected =
      std::get<0>(module->forward(x.unsqueeze(1), x.unsqueeze(1), x.unsqueeze(1))).squeeze(1);
  torch::Tensor qkv = at::linear(x, module->in_proj_weight, module->in_proj_bias);
  Segments segments = make_segments({kTokens}, torch::kCPU);
  for (bool fused : {false, true}) {
    torch::Tensor mixed = self_attention(qkv, segments, {kHeads, false, {}}, {at::kFloat, fused});
    torch::Tensor out = at::linear(mixed, module->out_proj->weight, module->out_proj->bias);
    EXPECT_TENSORS_CLOSE(out, expected, 2e-6);
  }
}

TEST(Attention, SurvivesLargeScores) {
  Segments segments = make_segments({5}, torch::kCPU);
  torch::Tensor qkv = random_tensor({5, 48}, 1) * 100;  // scores of tens of thousands
  torch::Tensor plain = self_attention(qkv, segments, {2, true, {}}, {at::kFloat, false});
  for_each_isa([&] {
    EXPECT_TENSORS_CLOSE(self_attention(qkv, segments, {2, true, {}}, {}), plain, 2e-4);
  });
}

TEST(Attention, DoesNotDependOnTheNumberOfThreads) {
  Segments segments = make_segments({30, 2, 17, 80, 5, 5, 21}, torch::kCPU);
  AttentionOptions options{4, true, test_dropout(0.2, segments.tokens())};
  Operation operation = [&](const std::vector<torch::Tensor>& in, const Numerics& numerics) {
    return self_attention(in[0], segments, options, numerics);
  };
  torch::Tensor qkv = random_tensor({segments.tokens(), 96}, 1);
  auto run = [&](int threads) {
    Threads scope(threads);
    return run_operation(operation, {qkv}, nullptr, {});
  };
  const Outcome one = run(1), two = run(2);
  EXPECT_TRUE(torch::equal(one.values[0], two.values[0]));
  EXPECT_TRUE(torch::equal(one.values[1], two.values[1]));
}

}  // namespace
}  // namespace lockstep
