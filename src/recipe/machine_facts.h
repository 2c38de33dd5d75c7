// Determines what this machine can do, for the rules.
#pragma once

#include "recipe/facts.h"

namespace lockstep {

// Measures matrix products for about a second (train/parts/machine_speed.h).
MachineFacts read_machine_facts();

// Returns a text such as "2 cores (avx512_dot), 24 GB of memory, matrix products at 0.4 TFLOP/s in
// bf16".
std::string describe_machine(const MachineFacts& machine);

}  // namespace lockstep
