// Dropout (Srivastava et al. 2014) whose mask is a pure function of (seed, step, site, row,
// column): no state, no order of draws, the same bits for any number of threads, ranks or
// micro-batches.
//
// Rows carry keys made from (sentence, position); a site is one place in the network. With
// 64 bits made from the keys of site and row, h = mix32(low 32 of them + column / 2, high 32), an
// element is dropped when its half of h (16 bits; low half for even columns) is below
// round(p * 65536). The kept ones are scaled by 1 / (1 - p'),
// p' being the threshold over 65536: p' differs from p by at most 2^-17.
#pragma once

#include <torch/types.h>

#include "nn/numerics.h"

namespace lockstep {

struct Dropout {
  double p = 0;        // 0: off
  uint64_t key = 0;    // of (seed, step, site)
  torch::Tensor rows;  // int64 [tokens], on the CPU or the device of the activations
  bool active() const { return p > 0; }
};

// Of a branch that is added to a residual stream: its elements, and whole rows.
struct BranchDropout : Dropout {
  BranchDropout() = default;
  BranchDropout(Dropout elements) : Dropout(std::move(elements)) {}  // NOLINT: implicit by design
  // What a row of the branch is multiplied by besides; fp32 [tokens], undefined: 1. Stochastic
  // depth (Huang et al. 2016) has 0 or 1 / (1 - p), equal for all rows of an image.
  torch::Tensor row_scale;
};

// The key of a site in a step: with one seed never the same for two (step, site), with two seeds
// by chance only (2^-64). REQUIRES step < 2^48, site < 2^16.
uint64_t dropout_key(uint64_t seed, int64_t step, int64_t site);

// bool [rows, width]: true where kept. The reference for the fused kernels.
torch::Tensor dropout_mask(const Dropout& dropout, int64_t width);

}  // namespace lockstep
