// Freezes weights (training.freeze): their gradients count nowhere, and what an optimizer does to
// weights without a gradient, such as decay, is undone.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "nn/parameters.h"

namespace lockstep {

// Returns for each parameter, in order, whether its whole name matches one of the regular
// expressions (ECMAScript). Throws ConfigError, which names `key`, for an expression that matches
// none.
std::vector<bool> names_match(const Parameters& parameters,
                              const std::vector<std::string>& expressions, const std::string& key);

class FrozenWeights {
 public:
  FrozenWeights() = default;  // freezes none
  // Freezes at their present values the weights that names_match() finds. Throws ConfigError for an
  // expression that matches no weight, and when nothing is left to train.
  FrozenWeights(const Parameters& parameters, const std::vector<std::string>& expressions);

  // Call this after the gradients were exchanged, before anything is measured of them.
  void drop_gradients();
  // Call this after the update. `average` holds all averaged weights, flat, or is undefined.
  void restore(const torch::Tensor& average);
  // Makes the present values those to keep.
  void remember();

  int64_t count() const;  // number of frozen weights

 private:
  struct Frozen {
    ParameterRef parameter;
    torch::Tensor kept;  // fp32 [its shape]
  };
  std::vector<Frozen> frozen_;
};

}  // namespace lockstep
