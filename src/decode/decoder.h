// Decodes incrementally with a Transformer: the encoder runs once, then every step adds one
// position to all hypotheses and reads the keys and values of the earlier positions from a cache.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "decode/candidates.h"
#include "decode/threads.h"

namespace lockstep {

// Ids of sentences, each not empty.
using Sentences = std::vector<std::vector<int32_t>>;

// Each row of a step is one hypothesis; hypotheses of one sentence are neighbours. At first every
// sentence has one row. Use it from one thread at a time.
class Decoder {
 public:
  virtual ~Decoder() = default;

  // Reads the newest token of every row (<s> at first).
  virtual void step(const std::vector<int64_t>& tokens) = 0;

  // After a step: best() returns the most likely next tokens, logits() all logits, [rows * pieces].
  virtual Candidates best(int64_t per_row, const std::vector<int32_t>& excluded) = 0;
  virtual std::vector<float> logits() = 0;

  // From now on row i continues what was row rows[i]: this reorders beams, widens them or drops
  // finished sentences. Every sentence that is kept has the same number of rows, side by side, and
  // sentences stay in order.
  virtual void select(const std::vector<int32_t>& rows) = 0;
};

// What searches decode with.
struct DecodingModel {
  // Encodes sources and starts one row for each; thread-safe. They have the form that training has.
  std::function<std::unique_ptr<Decoder>(const Sentences& sources)> start;
  // Those that share batches of sentences; one thread where the model is on a device of its own.
  const Threads& threads;
};

}  // namespace lockstep
