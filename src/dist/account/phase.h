// Names the phases of a rank's work, which its training loop marks (dist/account/progress.h).
#pragma once

#include <cstdint>

namespace lockstep {

enum class Phase : uint32_t {
  kStarting,
  kData,        // waits for the next batch
  kForward,     // including the loss
  kBackward,    // gradients; finished buckets are being exchanged
  kWait,        // for other ranks' gradients, or at a synchronization of local steps
  kOptimizer,   // norm, clipping, update
  kOther,       // the rest of a step: before, between and after the above; listeners, checks
  kEvaluation,  // may take long: its stalls are warned of later
  kCheckpoint,
  kEnding,
};
inline constexpr int kPhases = 10;
const char* name_of(Phase phase);  // "backward"

}  // namespace lockstep
