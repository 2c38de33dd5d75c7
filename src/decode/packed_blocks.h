// Computes the blocks of a packed Transformer for some rows: the residual stream, what each block
// reads of it, and the products between. T is the type of the activations, float or Bf16.
#pragma once

#include <cstdint>
#include <vector>

#include "decode/decoder.h"
#include "decode/packed_transformer.h"

namespace lockstep {

// Sentences one after the other: those of sentence s are the rows [offsets[s], offsets[s + 1]).
struct SourceRows {
  std::vector<int64_t> tokens, positions;
  std::vector<int64_t> offsets{0};
  int64_t longest = 0;

  explicit SourceRows(const Sentences& sentences);
  int64_t rows() const { return std::ssize(tokens); }
  int64_t sentences() const { return std::ssize(offsets) - 1; }
};

template <class T>
class PackedBlocks {
 public:
  // Both outlive this.
  PackedBlocks(const PackedTransformer& model, const Threads& threads)
      : model_(model), threads_(threads) {}

  // Sets the stream to embedding[tokens] * scale + positions[positions], and normed() to what the
  // block with the norm `first` reads. Positions are below `longest`.
  void begin(const std::vector<int64_t>& tokens, const std::vector<int64_t>& positions,
             int64_t longest, const PackedNorm& first, const EmbeddingTable& embedding);
  // [rows, d_model]: what the next block reads.
  const T* normed() const { return normed_; }
  int64_t rows() const { return rows_; }

  // out = linear(normed()), [rows, outputs].
  void product(const PackedLinear& linear, T* out);
  // Prepares normed() for several products.
  const PackedInput& prepared(const PackedLinear& linear);

  // A block's own norm and that of the next one; the network's variant decides which is used.
  struct Norms {
    const PackedNorm& own;
    const PackedNorm& next;
  };
  // Adds out(branch) to the stream, and prepares what the next block reads.
  void finish_block(const T* branch, const PackedLinear& out, const Norms& norms);
  void feed_forward(const PackedTransformer::FeedForward& block, const PackedNorm& next);

  // Runs the encoder: normed() is its output, [rows of source, d_model].
  void encode(const SourceRows& source);

 private:
  void normalise(const PackedNorm& norm, float* in_place_of_stream);
  void normalise(const PackedNorm& norm);
  template <class Y>
  void normalise_to(const PackedNorm& norm, Y* out);
  void take_stream();  // normed() is the stream itself, as activations
  void attend(const T* qkv, const SourceRows& source, T* out);

  const PackedTransformer& model_;
  const Threads& threads_;
  int64_t rows_ = 0;
  RowMemory stream_, other_stream_, normed_memory_, statistics_;
  RowMemory branch_, inner_, embedded_, zeros_;
  const T* normed_ = nullptr;
  PackedInput input_;
};

extern template class PackedBlocks<float>;
extern template class PackedBlocks<Bf16>;

}  // namespace lockstep
