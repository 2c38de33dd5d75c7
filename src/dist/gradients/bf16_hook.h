// The comm hook "bf16" sends gradients as bf16.
#pragma once

#include <memory>

#include "dist/gradients/comm_hooks.h"

namespace lockstep {

// Rounds the bucket to bf16 (to nearest even), lets `next` reduce that, and widens the result.
// Keeps one bf16 copy of each bucket. The error is at most 2^-9 of each addend, plus 2^-9 of the
// sum for each addition.
std::unique_ptr<CommHook> make_bf16_hook(std::unique_ptr<CommHook> next);

}  // namespace lockstep
