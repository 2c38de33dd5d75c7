// Defines dropout (Srivastava et al. 2014) whose mask is a pure function of (seed, step, site, row,
// column). It has no state and no order of draws, and gives the same bits for any number of
// threads, ranks or micro-batches.
//
// Rows have keys made from (sentence, position); a site is one place in the network. The keys of
// site and row give 64 bits, from which h = mix32(low 32 of them + column / 2, high 32). An element
// is dropped when its half of h (16 bits; the low half for even columns) is below round(p * 65536).
// Kept elements are scaled by 1 / (1 - p'), where p' is that threshold over 65536; it differs from
// p by at most 2^-17.
#pragma once

#include <torch/types.h>

#include "nn/numerics.h"

namespace lockstep {

struct Dropout {
  double p = 0;        // 0: off
  uint64_t key = 0;    // made from (seed, step, site) by dropout_key()
  torch::Tensor rows;  // int64 [tokens], on the CPU or the device of the activations
  bool active() const { return p > 0; }
};

// Dropout of a branch that is added to a residual stream: of its elements, and of whole rows.
struct BranchDropout : Dropout {
  BranchDropout() = default;
  BranchDropout(Dropout elements) : Dropout(std::move(elements)) {}  // NOLINT: implicit by design
  // An additional factor for each row of the branch; fp32 [tokens], undefined: 1. Stochastic depth
  // (Huang et al. 2016) uses 0 or 1 / (1 - p), equal for all rows of an image.
  torch::Tensor row_scale;
};

// Returns the key of a site in a step. With one seed all (step, site) have different keys, with two
// seeds keys are equal only by chance (2^-64). REQUIRES step < 2^48, site < 2^16.
uint64_t dropout_key(uint64_t seed, int64_t step, int64_t site);

// Returns bool [rows, width], true where kept: the reference for the fused kernels.
torch::Tensor dropout_mask(const Dropout& dropout, int64_t width);

}  // namespace lockstep
