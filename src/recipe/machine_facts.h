// What this machine can do, for the rules.
#pragma once

#include "recipe/facts.h"

namespace lockstep {

// Measures products for about a second (train/parts/machine_speed.h).
MachineFacts read_machine_facts();

// "2 cores, 24 GB of memory (20 GB free), avx512_dot, 0.40 TFLOP/s in bf16".
std::string describe_machine(const MachineFacts& machine);

}  // namespace lockstep
