// Declares the decoder that uses the operations of training, on any device. It is the reference for
// the one that reads packed weights (decode/packed_decoder.cpp).
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "decode/decoder.h"
#include "models/transformer.h"

namespace lockstep {

// The keys and values that attention reads while decoding. Row r of a step is one hypothesis;
// hypotheses of one sentence are neighbours, and all sentences have equally many.
class DecoderCache {
 public:
  virtual ~DecoderCache() = default;
  // Adds the position of this step and attends to all positions so far: qkv
  // [rows, 3 * d] -> [rows, d].
  virtual torch::Tensor attend_self(std::size_t layer, const torch::Tensor& qkv) = 0;
  // Attends from query [rows, d] to the encoder's output of the row's sentence -> [rows, d].
  virtual torch::Tensor attend_memory(std::size_t layer, const torch::Tensor& query) = 0;
  // See Decoder::select.
  virtual void select(const std::vector<int32_t>& rows) = 0;
};

// The input from which a cache is made.
struct DecoderMemory {
  int64_t heads = 1;
  Segments source;
  std::vector<torch::Tensor> key_value;  // for every layer: [source tokens, 2 * d], key | value
};

// Makes a cache that uses libtorch's operations on padded arrays, on any device.
std::unique_ptr<DecoderCache> make_padded_cache(const DecoderMemory& memory);

class DecoderState : public Decoder {
 public:
  // Encodes `sources` (in the form of TranslationInput's, not empty) and starts one row for each.
  // Reads the tokens of `primer` first. Runs in inference mode; `model` must outlive the state. Use
  // it from one thread at a time.
  DecoderState(const Transformer& model, const std::vector<std::vector<int32_t>>& sources,
               const Numerics& numerics, const std::vector<int64_t>& primer,
               const std::vector<int32_t>& suppressed = {});

  void step(const std::vector<int64_t>& tokens) override;
  Candidates best(int64_t per_row, const std::vector<int32_t>& excluded) override;
  std::vector<float> logits() override;
  void select(const std::vector<int32_t>& rows) override;

  int64_t rows() const { return rows_; }
  int64_t length() const { return length_; }  // steps so far

 private:
  torch::Tensor normalised_logits(const torch::Tensor& output) const;  // fp32, without suppressed_

  const Transformer& model_;
  Numerics numerics_;
  torch::Tensor suppressed_;  // int64, on the model's device
  int64_t rows_ = 0, length_ = 0;
  int64_t positions_ = 0;  // used so far: length_, plus the primer
  std::unique_ptr<DecoderCache> cache_;
  torch::Tensor output_;  // of the newest step, [rows, d_model] in the compute type
};

}  // namespace lockstep
