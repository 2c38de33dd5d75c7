// The comm hook "fp16" sends gradients as fp16.
#pragma once

#include <memory>

#include "dist/gradients/comm_hooks.h"

namespace lockstep {

// Rounds the bucket to fp16 (to nearest even), lets `next` reduce that, and widens the result.
// Where the bucket's unit is far from what fp16 represents well, the bucket is first multiplied by
// a power of two: a mean gradient of 1 is sent as about 1,000, so that 6e-8 is still a normal
// number and 60 does not overflow.
//
// If a sum overflows, all ranks reduce the bucket once more, unrounded in fp32. So what is not
// finite afterwards was not finite before, as the step guard expects. Keeps one fp16 copy of each
// bucket. For numbers in fp16's normal range, the error is at most 2^-11 of each addend, plus 2^-11
// of the sum for each addition.
std::unique_ptr<CommHook> make_fp16_hook(std::unique_ptr<CommHook> next);

}  // namespace lockstep
