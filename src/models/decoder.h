// Decodes incrementally with a Transformer: the encoder runs once, then every step adds one
// position to all hypotheses and reads the keys and values of the earlier positions from a cache.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/candidates.h"
#include "models/packed_transformer.h"
#include "models/transformer.h"
#include "nn/numerics.h"

namespace lockstep {

// Each row of a step is one hypothesis; hypotheses of one sentence are neighbours. At first every
// sentence has one row. Use it from one thread at a time.
class Decoder {
 public:
  virtual ~Decoder() = default;

  // tokens int64 [rows]: the newest token of every row (<s> at first). Returns the decoder's output
  // for them, [rows, d_model] in the compute type.
  virtual torch::Tensor step(const torch::Tensor& tokens) = 0;

  // For an output of step(): best() returns the most likely next tokens, logits() all logits, fp32
  // on the CPU [rows, pieces].
  virtual Candidates best(const torch::Tensor& output, int64_t per_row,
                          const std::vector<int32_t>& excluded) const = 0;
  virtual torch::Tensor logits(const torch::Tensor& output) const = 0;

  // From now on row i continues what was row rows[i]: this reorders beams, widens them or drops
  // finished sentences. Every sentence that is kept has the same number of rows, side by side, and
  // sentences stay in order.
  virtual void select(const std::vector<int32_t>& rows) = 0;
};

// The model that decodes: the network as it is trained, or the same weights packed for inference.
struct DecodingModel {
  const Transformer& model;
  Numerics numerics;
  // Uses our own kernels, on the CPU; null: the operations of training are used, on any device.
  const PackedTransformer* packed = nullptr;
  // Tokens that every hypothesis begins with; their outputs are not looked at. Absent: none, or,
  // with start = "zero", kZeroToken.
  std::optional<std::vector<int64_t>> primer = {};
  // Ids whose probability is 0 before probabilities are normalised (`packed` was made with them).
  std::vector<int32_t> suppressed = {};
};

// Encodes `sources` (in the form of TranslationInput's, not empty) and starts one row for each. The
// objects that `model` refers to must outlive the decoder.
std::unique_ptr<Decoder> make_decoder(const DecodingModel& model,
                                      const std::vector<std::vector<int32_t>>& sources);

}  // namespace lockstep
