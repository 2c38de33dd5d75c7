#include "nn/library_attention.h"

#include <ATen/ops/_efficient_attention_forward.h>

#include <cmath>
#include <limits>
#include <optional>

#include "nn/plain.h"

namespace lockstep::detail {
namespace {

// [tokens, width] -> [sentences, heads, longest, width / heads]
torch::Tensor split_heads(const torch::Tensor& x, const Segments& segments, int64_t heads) {
  torch::Tensor padded = pad_segments(x, segments);
  return padded.view({padded.size(0), padded.size(1), heads, -1}).transpose(1, 2);
}

// Returns bool [sentences, heads, target longest, source longest]: the weights that dropout keeps.
torch::Tensor attention_dropout_mask(const AttentionInput& in, const AttentionOptions& options) {
  torch::Tensor head = torch::arange(options.heads, options.dropout.rows.options());
  Dropout dropout = options.dropout;
  dropout.rows = (dropout.rows.unsqueeze(1) * options.heads + head).flatten();
  torch::Tensor mask = dropout_mask(dropout, in.source.longest);
  return pad_segments(mask.view({in.target.tokens(), options.heads, -1}), in.target)
      .transpose(1, 2);
}

}  // namespace

torch::Tensor plain_attention(const AttentionInput& in, const AttentionOptions& options) {
  torch::Tensor q = split_heads(in.query, in.target, options.heads);
  torch::Tensor k = split_heads(in.key, in.source, options.heads);
  torch::Tensor v = split_heads(in.value, in.source, options.heads);
  // Every query sees at least one key: each sentence has a token, and padding comes after it.
  torch::Tensor visible = segment_mask(in.source, q.device()).unsqueeze(1).unsqueeze(1);
  if (options.causal) {
    visible = visible & torch::ones({q.size(2), k.size(2)}, visible.options()).tril();
  }
  torch::Tensor mixed;
  if (options.dropout.active()) {
    // scaled_dot_product_attention would draw its own mask, so the product is spelled out here.
    torch::Tensor scores =
        q.matmul(k.transpose(-2, -1)).to(torch::kFloat) / std::sqrt(static_cast<double>(q.size(3)));
    scores = scores.masked_fill(visible.logical_not(), -std::numeric_limits<float>::infinity());
    torch::Tensor weights =
        scores.softmax(-1) * attention_dropout_mask(in, options) * dropout_scale(options.dropout.p);
    mixed = weights.to(v.scalar_type()).matmul(v);
  } else {
    mixed = at::scaled_dot_product_attention(q, k, v, visible);
  }
  return pack_segments(mixed.transpose(1, 2).flatten(2), in.target);
}

bool takes_librarys(const Numerics& numerics, const torch::Tensor& query,
                    const AttentionOptions& options) {
  return !query.is_cpu() && numerics.is_fused(FusedOperation::kAttention) &&
         !options.dropout.active() && query.size(1) / options.heads % 8 == 0;
}

torch::Tensor librarys_attention(const AttentionInput& in, const AttentionOptions& options) {
  const auto split = [&](const torch::Tensor& x) {  // [1, tokens, heads, width / heads]
    return x.view({1, x.size(0), options.heads, -1});
  };
  constexpr int64_t kNoMask = 0, kCausalFromTopLeft = 1;
  const bool backward = at::GradMode::is_enabled() && in.query.requires_grad();
  const torch::Tensor out = std::get<0>(at::_efficient_attention_forward(
      split(in.query), split(in.key), split(in.value), /*bias=*/std::nullopt,
      in.target.offsets_there, in.source.offsets_there, in.target.longest, in.source.longest,
      /*dropout_p=*/0.0, options.causal ? kCausalFromTopLeft : kNoMask, backward));
  return out.view({in.query.size(0), in.query.size(1)});
}

std::vector<torch::Tensor> parts_of(const torch::Tensor& x, int64_t count) {
  return x.view({x.size(0), count, x.size(1) / count}).unbind(1);
}

}  // namespace lockstep::detail
