#include "nn/attention.h"

#include <cmath>
#include <limits>
#include <optional>

#include "nn/plain.h"

namespace lockstep {
namespace {

// What one attention reads: views into the inputs, both sides with as many sentences.
struct AttentionInput {
  torch::Tensor query;       // [target tokens, width]
  torch::Tensor key, value;  // [source tokens, width]
  const Segments& target;
  const Segments& source;
};

// [tokens, width] -> [sentences, heads, longest, width / heads]
torch::Tensor split_heads(const torch::Tensor& x, const Segments& segments, int64_t heads) {
  torch::Tensor padded = pad_segments(x, segments);
  return padded.view({padded.size(0), padded.size(1), heads, -1}).transpose(1, 2);
}

// bool [sentences, heads, target longest, source longest]: the weights that dropout keeps.
torch::Tensor attention_dropout_mask(const AttentionInput& in, const AttentionOptions& options) {
  torch::Tensor head = torch::arange(options.heads, options.dropout.rows.options());
  Dropout dropout = options.dropout;
  dropout.rows = (dropout.rows.unsqueeze(1) * options.heads + head).flatten();
  torch::Tensor mask = dropout_mask(dropout, in.source.longest);
  return pad_segments(mask.view({in.target.tokens(), options.heads, -1}), in.target)
      .transpose(1, 2);
}

torch::Tensor plain_attention(const AttentionInput& in, const AttentionOptions& options) {
  torch::Tensor q = split_heads(in.query, in.target, options.heads);
  torch::Tensor k = split_heads(in.key, in.source, options.heads);
  torch::Tensor v = split_heads(in.value, in.source, options.heads);
  // Every query sees at least one key: sentences have a token, and padding comes after them.
  torch::Tensor visible = segment_mask(in.source, q.device()).unsqueeze(1).unsqueeze(1);
  if (options.causal) {
    visible = visible & torch::ones({q.size(2), k.size(2)}, visible.options()).tril();
  }
  torch::Tensor mixed;
  if (options.dropout.active()) {
    // scaled_dot_product_attention draws its own mask, so the product is spelled out here.
    torch::Tensor scores =
        q.matmul(k.transpose(-2, -1)).to(torch::kFloat) / std::sqrt(static_cast<double>(q.size(3)));
    scores = scores.masked_fill(visible.logical_not(), -std::numeric_limits<float>::infinity());
    torch::Tensor weights = scores.softmax(-1) * attention_dropout_mask(in, options) *
                            detail::dropout_scale(options.dropout.p);
    mixed = weights.to(v.scalar_type()).matmul(v);
  } else {
    mixed = at::scaled_dot_product_attention(q, k, v, visible);
  }
  return pack_segments(mixed.transpose(1, 2).flatten(2), in.target);
}

}  // namespace

torch::Tensor self_attention(const torch::Tensor& qkv, const Segments& segments,
                             const AttentionOptions& options, const Numerics& numerics) {
  std::vector<torch::Tensor> parts = qkv.chunk(3, 1);
  return plain_attention({parts[0], parts[1], parts[2], segments, segments}, options);
}

torch::Tensor cross_attention(const torch::Tensor& query, const torch::Tensor& memory,
                              const Segments& target, const Segments& source,
                              const AttentionOptions& options, const Numerics& numerics) {
  TORCH_CHECK(target.sentences() == source.sentences(), "attention between ", target.sentences(),
              " and ", source.sentences(), " sentences");
  std::vector<torch::Tensor> parts = memory.chunk(2, 1);
  return plain_attention({query, parts[0], parts[1], target, source}, options);
}

}  // namespace lockstep
