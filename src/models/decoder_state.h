// Incremental decoding with a Transformer: the encoder runs once, then every step adds one position
// to all hypotheses and reads the keys and values of the earlier ones from a cache.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "models/transformer.h"

namespace lockstep {

// The keys and values that attention reads while decoding. Row r of a step is one hypothesis;
// hypotheses of one sentence are neighbours and equally many for all sentences.
class DecoderCache {
 public:
  virtual ~DecoderCache() = default;
  // Adds the position of this step and attends to all so far: qkv [rows, 3 * d] -> [rows, d]. The
  // cache keeps `qkv`: the caller does not write to it any more.
  virtual torch::Tensor attend_self(std::size_t layer, const torch::Tensor& qkv) = 0;
  // query [rows, d] to the encoder's output of the row's sentence -> [rows, d].
  virtual torch::Tensor attend_memory(std::size_t layer, const torch::Tensor& query) = 0;
  // See DecoderState::select.
  virtual void select(const std::vector<int32_t>& rows) = 0;
};

// What a cache is made from.
struct DecoderMemory {
  int64_t heads = 1;
  Segments source;
  std::vector<torch::Tensor> key_value;  // of every layer: [source tokens, 2 * d], key | value
};

// With libtorch's operations on padded arrays, on any device.
std::unique_ptr<DecoderCache> make_padded_cache(DecoderMemory memory);
// With kernels of our own, on the CPU, for fp32 and bf16.
std::unique_ptr<DecoderCache> make_packed_cache(DecoderMemory memory);

class DecoderState {
 public:
  // Encodes `sources` (as TranslationInput's, not empty) and starts one row for each. Runs in
  // inference mode; `model` must outlive the state. One thread at a time.
  DecoderState(const Transformer& model, const std::vector<std::vector<int32_t>>& sources,
               const Numerics& numerics);

  // tokens int64 [rows]: the newest token of every row (<s> at first) -> the decoder's output for
  // it, in the compute type [rows, d_model].
  torch::Tensor step(const torch::Tensor& tokens);

  // From now on row i continues what was row rows[i]: reorders beams, makes them wider or drops
  // finished sentences. Each sentence that is kept has the same number of rows, side by side, and
  // sentences stay in order.
  void select(const std::vector<int32_t>& rows);

  int64_t rows() const { return rows_; }
  int64_t length() const { return length_; }  // steps so far

 private:
  const Transformer& model_;
  Numerics numerics_;
  int64_t rows_ = 0, length_ = 0;
  int64_t positions_ = 0;  // taken so far: length_, and one before with start = "zero"
  std::unique_ptr<DecoderCache> cache_;
};

}  // namespace lockstep
