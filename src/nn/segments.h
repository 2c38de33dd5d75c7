// Describes sentences of different lengths stored one after the other, without padding: row r of a
// [tokens, width] tensor belongs to sentence s when offsets[s] <= r < offsets[s + 1].
#pragma once

#include <torch/types.h>

#include <vector>

namespace lockstep {

struct Segments {
  std::vector<int32_t> offsets{0};  // [sentences + 1], first 0, last the number of tokens
  torch::Tensor padded_rows;        // int64 [tokens] on the device: row in the padded layout
                                    // [sentences * longest], for plain operations
  torch::Tensor offsets_there;      // int32 [sentences + 1] on the device; undefined on the CPU
  int64_t longest = 0;              // tokens of the longest sentence

  int64_t sentences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  int64_t tokens() const { return offsets.back(); }
};

// Makes the segments from the lengths (each at least 1), with its tensors on `device`.
Segments make_segments(const std::vector<int32_t>& lengths, torch::Device device);

// Returns int64 [sentences] on `device`: the rows where the sentences begin.
torch::Tensor first_rows(const Segments& segments, torch::Device device);

// Converts [tokens, ...] to [sentences, longest, ...] with zeros in the padding, and back.
torch::Tensor pad_segments(const torch::Tensor& packed, const Segments& segments);
torch::Tensor pack_segments(const torch::Tensor& padded, const Segments& segments);
// Returns bool [sentences, longest], true on tokens.
torch::Tensor segment_mask(const Segments& segments, torch::Device device);

}  // namespace lockstep
