// Resolves run.precision = "auto": the best number format that the hardware of every rank computes.
// The choice is made once, before the network is built; the run folder records it.
#pragma once

#include <optional>
#include <string>

#include "dist/collectives/world.h"
#include "kernels/number_formats.h"
#include "train/folder/run_folder.h"

namespace lockstep {

struct RunSection;

// Returns the formats of the device that this process computes on: its CPU, or the local GPU
// `index`.
NumberFormats device_formats(bool gpu, int index);

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
