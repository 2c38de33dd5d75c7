#include "decode/packed_blocks.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace lockstep {

SourceRows::SourceRows(const Sentences& sentences) {
  for (const std::vector<int32_t>& sentence : sentences) {
    for (std::size_t i = 0; i < sentence.size(); ++i) {
      tokens.push_back(sentence[i]);
      positions.push_back(static_cast<int64_t>(i));
    }
    offsets.push_back(std::ssize(tokens));
    longest = std::max<int64_t>(longest, std::ssize(sentence));
  }
}

template <class T>
void PackedBlocks<T>::begin(const std::vector<int64_t>& tokens,
                            const std::vector<int64_t>& positions, int64_t longest,
                            const PackedNorm& first, const EmbeddingTable& embedding) {
  const int64_t width = model_.shape.d_model;
  rows_ = std::ssize(tokens);
  const PositionRows signal = model_.positions(longest);
  const float* table = embedding.values;
  const int64_t* row_of_table = tokens.data();
  std::vector<int64_t> own_rows;
  if (table == nullptr) {  // the rows that are read, unpacked
    float* rows = embedded_.room<float>(rows_ * width);
    own_rows = tokens;
    for (int64_t r = 0; r < rows_; ++r) {
      int64_t& token = own_rows[static_cast<std::size_t>(r)];
      if (token < 0) {  // counts as zero, but is read
        std::fill(rows + r * width, rows + (r + 1) * width, 0.0f);
        continue;
      }
      embedding.packed->weights_of(token, rows + r * width);
      token = r;
    }
    table = rows;
    row_of_table = own_rows.data();
  }
  const EmbeddingArgs args{row_of_table,
                           positions.data(),
                           table,
                           signal.get(),
                           stream_.room<float>(rows_ * width),
                           width,
                           model_.shape.embedding_scale,
                           {}};
  kernels().embedding(args, 0, rows_);
  if (model_.shape.pre_norm) {
    T* out = normed_memory_.room<T>(rows_ * width);
    normalise_to(first, out);
    normed_ = out;
  } else {
    take_stream();
  }
}

template <class T>
template <class Y>
void PackedBlocks<T>::normalise_to(const PackedNorm& norm, Y* out) {
  const int64_t width = model_.shape.d_model;
  float* statistics = statistics_.room<float>(2 * rows_);
  const LayerNormArgs<Y> args{stream_.data<float>(),
                              norm.weight,
                              norm.bias,
                              out,
                              statistics,
                              statistics + rows_,
                              width,
                              static_cast<float>(model_.shape.norm_epsilon)};
  const auto kernel = kernels().typed<Y>().layer_norm;
  threads_.split_rows(rows_, width, [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
}

template <class T>
void PackedBlocks<T>::take_stream() {
  if constexpr (std::is_same_v<T, float>) {
    normed_ = stream_.data<float>();
  } else {
    const int64_t n = rows_ * model_.shape.d_model;
    T* out = normed_memory_.room<T>(n);
    kernels().to_bf16(stream_.data<float>(), out, n);
    normed_ = out;
  }
}

template <class T>
const PackedInput& PackedBlocks<T>::prepared(const PackedLinear& linear) {
  linear.prepare(normed_, rows_, input_, threads_);
  return input_;
}

template <class T>
void PackedBlocks<T>::product(const PackedLinear& linear, T* out) {
  linear.multiply(prepared(linear), ProductEnd::kStore, out, threads_);
}

template <class T>
void PackedBlocks<T>::finish_block(const T* branch, const PackedLinear& out, const Norms& norms) {
  // With fp32 post-norm `branch` was made from the stream itself, which is no longer read.
  out.prepare(branch, rows_, input_, threads_);
  out.multiply(input_, ProductEnd::kAdd, stream_.data<float>(), threads_);
  const int64_t n = rows_ * model_.shape.d_model;
  if (model_.shape.pre_norm) {
    normalise_to(norms.next, normed_memory_.room<T>(n));
    normed_ = normed_memory_.data<T>();
    return;
  }
  normalise_to(norms.own, other_stream_.room<float>(n));
  std::swap(stream_, other_stream_);
  take_stream();
}

template <class T>
void PackedBlocks<T>::feed_forward(const PackedTransformer::FeedForward& block,
                                   const PackedNorm& next) {
  const int64_t width = model_.shape.feed_forward;
  const bool relu = model_.shape.activation == "relu";
  T* inner = inner_.room<T>(rows_ * width);
  block.up.multiply(prepared(block.up), relu ? ProductEnd::kStoreRelu : ProductEnd::kStore, inner,
                    threads_);
  if (!relu) {
    T* no_bias = zeros_.room<T>(width);
    std::fill(no_bias, no_bias + width, T{});
    const GeluDropoutArgs<T> args{inner, no_bias, inner, width, {}};
    const auto kernel = model_.shape.activation == "silu" ? kernels().typed<T>().silu_dropout
                                                          : kernels().typed<T>().gelu_dropout;
    threads_.split_rows(rows_, width,
                        [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
  }
  finish_block(inner, block.down, {block.norm, next});
}

template <class T>
void PackedBlocks<T>::attend(const T* qkv, const SourceRows& source, T* out) {
  const int64_t width = model_.shape.d_model, heads = model_.shape.heads;
  AttentionArgs<T> args{};
  args.query = qkv;
  args.key = qkv + width;
  args.value = qkv + 2 * width;
  args.query_stride = args.key_stride = 3 * width;
  args.heads = heads;
  args.head_width = width / heads;
  args.log_sum = statistics_.room<float>(rows_ * heads);
  args.out = out;
  args.out_stride = width;
  const auto kernel = kernels().typed<T>().attention;
  const int64_t scratch = kernels().attention_scratch(source.longest, args.head_width);
  threads_.split(0, source.sentences() * heads, 1, [&](int64_t begin, int64_t end) {
    RowMemory memory;
    for (int64_t task = begin; task < end; ++task) {
      const std::size_t s = static_cast<std::size_t>(task / heads);
      const int64_t first = source.offsets[s], last = source.offsets[s + 1];
      kernel(args, {first, last, first, last, task % heads}, memory.room<float>(scratch));
    }
  });
}

template <class T>
void PackedBlocks<T>::encode(const SourceRows& source) {
  const std::vector<PackedTransformer::Layer>& layers = model_.encoder;
  begin(source.tokens, source.positions, source.longest, layers.front().self.norm,
        model_.encoder_table());
  const int64_t width = model_.shape.d_model;
  RowMemory qkv_memory;
  T* qkv = qkv_memory.room<T>(3 * rows_ * width);
  T* mixed = branch_.room<T>(rows_ * width);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto& [self, cross, inner] = layers[i];
    product(self.in, qkv);
    attend(qkv, source, mixed);
    finish_block(mixed, self.out, {self.norm, inner.norm});
    feed_forward(inner, model_.norm_after_encoder_layer(i));
  }
}

template class PackedBlocks<float>;
template class PackedBlocks<Bf16>;

}  // namespace lockstep
