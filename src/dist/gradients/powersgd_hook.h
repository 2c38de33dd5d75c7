// The comm hook "powersgd" sends gradients as products of two thin matrices: Vogels, Karimireddy,
// Jaggi 2019, "PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization",
// algorithms 1 and 2, with the order of operations of torch.distributed's powerSGD_hook.
#pragma once

#include <memory>

#include "dist/gradients/comm_hooks.h"

namespace lockstep {

// For each matrix M of a bucket, with Q from the last step (or random):
//   M += error;  P = sum over ranks of M Q, orthogonalised;  Q = sum of M^T P;
//   the sum of all M becomes P Q^T, and error = M - P Q^T / ranks.
// Vectors, and matrices that would not shrink, are sent whole in one message with P. Each bucket
// takes two messages, both through `next`; the second ones of all buckets start together.
//
// The error is kept in units of the mean gradient, so that neither a step's number of targets nor a
// loss scale changes its weight. A step whose gradients are not finite leaves it unchanged. Keeps
// one fp32 array of the length of the gradients. REQUIRES buckets that hold whole parameters.
std::unique_ptr<CommHook> make_powersgd_hook(const HookContext& context,
                                             std::unique_ptr<CommHook> next);

}  // namespace lockstep
