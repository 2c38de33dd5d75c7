// What run.precision = "auto" means: the best number format that the hardware of every rank
// computes. The choice is made once, before the network; the run folder keeps what was chosen.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dist/collectives/world.h"
#include "train/config/run_folder.h"

namespace lockstep {

struct RunSection;

// The 16-bit formats whose matrix products a device has instructions for.
struct NumberFormats {
  bool bf16 = false, fp16 = false;
  std::string why;  // "this CPU has avx512_bf16"

  bool has(const std::string& precision) const;  // fp32: always
};

// Of a CPU by the name of its kernels (kernels/kernel_table.h). fp16 is never one: they compute it
// in fp32.
NumberFormats cpu_formats(std::string_view isa);
// Of a GPU by its compute capability: bf16 from 8.0 (Ampere), fp16 from 7.0 (Volta) on tensor
// cores.
NumberFormats gpu_formats(const std::string& name, int major, int minor);
// Of what this process computes on: its CPU, or the local GPU `index`.
NumberFormats device_formats(bool gpu, int index);

struct PrecisionChoice {
  std::string precision;  // "bf16", "fp16" or "fp32"
  std::string why;
};

struct NamedFormats {
  std::string name;  // "rank 1 on b"
  NumberFormats formats;
};
// bf16 where all have it, else fp16 where all have that, else fp32. REQUIRES one at least.
PrecisionChoice choose_precision(const std::vector<NamedFormats>& all);

// Replaces "auto" by what suits this process alone: for a model that is used, not trained.
void settle_precision(RunSection& run, bool gpu, int index);

// Collective, for training. "auto" becomes the precision in which the run that is gone on with
// began
// (`config_holder`: the rank whose run folder knows; nothing: a new run), else what
// choose_precision makes of all ranks. Returns what the log says of it: "bf16 (auto: this CPU has
// avx512_bf16)". Says in the log, on rank 0, when its hardware does not compute the precision.
std::string agree_on_precision(World& world, RunSection& run, const RunFolder& folder,
                               std::optional<int> config_holder, const NumberFormats& mine);

}  // namespace lockstep
