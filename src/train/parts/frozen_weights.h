// Weights that training leaves as they are (training.freeze): their gradients count nowhere, and
// what an optimizer does to weights without a gradient, as decay, is undone.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "nn/parameters.h"

namespace lockstep {

// Of each parameter, in order, whether its whole name matches one of the regular expressions
// (ECMAScript). ConfigError, which names `key`, for an expression that matches none.
std::vector<bool> names_match(const Parameters& parameters,
                              const std::vector<std::string>& expressions, const std::string& key);

class FrozenWeights {
 public:
  FrozenWeights() = default;  // none
  // Those whose whole name matches one of the regular expressions (ECMAScript), as they are now.
  // ConfigError for an expression that matches no weight, and when
  // nothing is left to train.
  FrozenWeights(const Parameters& parameters, const std::vector<std::string>& expressions);

  // After the gradients were exchanged, before anything is measured of them.
  void drop_gradients();
  // After the update. `average`: of all weights, flat, or undefined.
  void restore(const torch::Tensor& average);
  // Their present values are those to keep.
  void remember();

  int64_t count() const;  // weights

 private:
  struct Frozen {
    ParameterRef parameter;
    torch::Tensor kept;  // fp32 [its shape]
  };
  std::vector<Frozen> frozen_;
};

}  // namespace lockstep
