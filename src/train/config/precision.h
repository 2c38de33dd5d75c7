// Resolves run.precision = "auto": the best number format that the hardware of every rank computes.
// The choice is made once, before the network is built; the run folder records it.
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

  bool has(const std::string& precision) const;  // always true for fp32
};

// Returns the formats of a CPU by the name of its kernels (kernels/kernel_table.h). fp16 is never
// among them: CPU kernels compute it in fp32.
NumberFormats cpu_formats(std::string_view isa);
// Returns the formats of a GPU by its compute capability: bf16 from 8.0 (Ampere), fp16 from 7.0
// (Volta) on tensor cores.
NumberFormats gpu_formats(const std::string& name, int major, int minor);
// Returns the formats of the device that this process computes on: its CPU, or the local GPU
// `index`.
NumberFormats device_formats(bool gpu, int index);

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

// Replaces "auto" by what suits this process alone, for a model that is used and not trained.
void settle_precision(RunSection& run, bool gpu, int index);

// Resolves "auto" for training: to the precision in which a resumed run began (`config_holder` is
// the rank whose run folder knows it; nothing for a new run), else to choose_precision() of all
// ranks. Returns the text for the log: "bf16 (auto: this CPU has avx512_bf16)". Also logs when this
// rank's hardware does not compute a given or resumed precision natively; the console shows rank
// 0's line. Collective.
std::string agree_on_precision(World& world, RunSection& run, const RunFolder& folder,
                               std::optional<int> config_holder, const NumberFormats& mine);

}  // namespace lockstep
