// Floating-point operations of training, from the shapes of the weights. Counts those of matrix
// products and convolutions, two a multiply-add; a backward pass costs twice a forward pass
// (Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1: 6 N D).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

using NamedShapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

// What a step works on; the network's kind follows from the names of its weights.
struct StepWork {
  double targets = 0, sources = 0;  // tokens; with items alone: images
  double items = 0;
  double pixels = 0;  // a side of an image
};

struct FlopCount {
  double flops = 0;     // of a step, forward and backward
  std::string formula;  // with its numbers
  std::string omits;    // what is not counted
};

// Translation: encoder matrices by source tokens, decoder matrices and the output by target tokens,
// except that keys and values of cross-attention see source tokens. ViT: all blocks by patches + 1.
// ResNet: every convolution by the pixels of its stage. Others: matrices by tokens.
// Nothing where the work is not known.
std::optional<FlopCount> count_flops(const NamedShapes& weights, const StepWork& work);

}  // namespace lockstep
