// Gradients as fp16 on the wire.
#pragma once

#include <memory>

#include "dist/gradients/comm_hooks.h"

namespace lockstep {

// Rounds the bucket to fp16 (to nearest even), lets `next` reduce that, and widens the result.
// Where the bucket's unit is far from what fp16 holds well, it goes times a power of two: a mean
// gradient of 1 as about 1,000, so that 6e-8 is still a normal number and 60 no overflow.
//
// A sum that overflows does not pass: the bucket is then reduced once more as it is, in fp32, on
// all ranks alike. So what is not finite afterwards was not finite before, as the step guard
// expects. Keeps one fp16 copy of each bucket. The error is at most 2^-11 of each addend and of the
// sum once for each addition, for numbers that fp16 holds in full.
std::unique_ptr<CommHook> make_fp16_hook(std::unique_ptr<CommHook> next);

}  // namespace lockstep
