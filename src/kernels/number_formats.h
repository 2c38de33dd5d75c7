// Number formats that hardware multiplies fast, and which of them run.precision = "auto" becomes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// The 16-bit formats whose matrix products a device has instructions for, faster ones than for
// fp32.
struct NumberFormats {
  bool bf16 = false, fp16 = false;
  std::string why;  // "this CPU has avx512_bf16"

  bool has(const std::string& precision) const;  // always true for fp32
};

// Returns the formats of a CPU by the name of its kernels and whether bf16 is fast for them
// (kernels/kernel_table.h). fp16 is never among them: CPU kernels compute it in fp32.
NumberFormats cpu_formats(std::string_view isa, bool fast_bf16);
// Returns the formats of a GPU by its compute capability: bf16 from 8.0 (Ampere), fp16 from 7.0
// (Volta) on tensor cores.
NumberFormats gpu_formats(const std::string& name, int major, int minor);
struct PrecisionChoice {
  std::string precision;  // "bf16", "fp16" or "fp32"
  std::string why;
};

struct NamedFormats {
  std::string name;  // "rank 1 on b"
  NumberFormats formats;
};
// Chooses bf16 where all have it, else fp16 where all have that, else fp32. REQUIRES at least one
// entry.
PrecisionChoice choose_precision(const std::vector<NamedFormats>& all);

}  // namespace lockstep
