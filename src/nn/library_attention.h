// Declares attention out of libtorch's operations: the plain path, which is the reference of the
// kernels, and the library's own kernels for GPUs.
#pragma once

#include <torch/types.h>

#include <vector>

#include "nn/attention.h"

namespace lockstep::detail {

// The input of one attention: views, with the same number of sentences on both sides.
struct AttentionInput {
  torch::Tensor query;       // [target tokens, width]
  torch::Tensor key, value;  // [source tokens, width]
  const Segments& target;
  const Segments& source;
};

// The parts of a row of x, [tokens, width] each: views, whose gradients are put side by side at
// once.
std::vector<torch::Tensor> parts_of(const torch::Tensor& x, int64_t count);

// Returns [target tokens, width]; pads the sentences.
torch::Tensor plain_attention(const AttentionInput& in, const AttentionOptions& options);

// Whether librarys_attention() computes this one: it uses tensor cores of GPUs, but wants heads
// whose rows are aligned, and its dropout draws numbers of its own.
bool takes_librarys(const Numerics& numerics, const torch::Tensor& query,
                    const AttentionOptions& options);

// Computes attention over packed sentences on a GPU, without padding, by the kernels of xFormers
// that libtorch has for all number formats and all GPUs (Rabe and Staats 2021; the flash kernels
// know neither fp32 nor GPUs before Ampere). Autograd knows its backward pass.
torch::Tensor librarys_attention(const AttentionInput& in, const AttentionOptions& options);

}  // namespace lockstep::detail
