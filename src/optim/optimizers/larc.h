// Implements LARC (You et al. 2017, "Large Batch Training of Convolutional Networks") as in
// NVIDIA's OpenSeq2Seq: each layer's gradient is scaled so that its update is at most, or about, a
// share `eta` of the layer's norm.
#pragma once

#include <string>
#include <vector>

#include "optim/optimizers/optimizer.h"

namespace lockstep {

struct LarcConfig {
  std::string mode = "off";
  double eta = 1e-3;
  double min_update = 1e-7;
  double epsilon = 1e-7;

  bool is_on() const { return mode != "off"; }
  void describe(Fields& f);
};

// Returns the factor for each layer's gradient, given |w| and |g| of the mean gradient
// (gradient_scale times what the arrays hold):
//   clip   min(1, max(min_update, eta * |w| / (lr * (|g| + epsilon)))): steps never grow
//   scale  max(min_update, eta * |w| / (|g| + epsilon)): lr times this is the layer's rate
// A layer of zeros (a bias at the start) gets the factor min_update, as in OpenSeq2Seq.
std::vector<double> larc_scales(const std::vector<LayerSlice>& layers, const LarcConfig& config,
                                double lr, double gradient_scale);

}  // namespace lockstep
