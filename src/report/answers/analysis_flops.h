// Counts the floating-point operations of training from the shapes of the weights: those of matrix
// products and convolutions, two per multiply-add; a backward pass costs twice a forward pass
// (Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1: 6 N D).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

using NamedShapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

// The work of one step. The kind of network follows from the names of its weights.
struct StepWork {
  double targets = 0, sources = 0;  // tokens; with items alone: images
  double items = 0;
  double pixels = 0;  // per side of an image
};

struct FlopCount {
  double flops = 0;     // per step, forward and backward
  std::string formula;  // with its numbers filled in
  std::string omits;    // what is not counted
};

// Translation counts encoder matrices by source tokens, decoder matrices and the output by target
// tokens, except that keys and values of cross-attention see source tokens. ViT counts all blocks
// by patches + 1, ResNet every convolution by the pixels of its stage, other networks matrices by
// tokens. Returns nothing where the work is not known.
std::optional<FlopCount> count_flops(const NamedShapes& weights, const StepWork& work);

}  // namespace lockstep
