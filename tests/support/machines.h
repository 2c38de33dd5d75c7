// Machines for which recipes choose configurations in tests.
#pragma once

#include "recipe/facts.h"
#include "recipe/yardstick.h"

namespace lockstep {

// The machine of benchmarks/notes: 2 cores, 24 GB, bf16.
inline MachineFacts measured_machine() {
  return {.cores = 2,
          .memory_bytes = int64_t{24} << 30,
          .available_bytes = int64_t{20} << 30,
          .instructions = "avx512_dot",
          .computes_bf16 = true,
          .product_flops = kYardstickProducts,
          .fp32_flops = kYardstickFp32};
}

// Returns measured_machine() with its cores and its speed multiplied by `times`.
inline MachineFacts larger_machine(double times) {
  MachineFacts out = measured_machine();
  out.cores *= times;
  out.product_flops *= times;
  out.fp32_flops *= times;
  return out;
}

inline MachineFacts machine_with_gpus(int gpus) {
  MachineFacts out = larger_machine(8);
  out.gpus = gpus;
  out.instructions = "cuda";
  out.product_flops = 500e12;
  out.fp32_flops = 40e12;
  return out;
}

}  // namespace lockstep
