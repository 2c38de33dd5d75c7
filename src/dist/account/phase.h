// What a rank is doing, as its training loop marks it (dist/account/progress.h).
#pragma once

#include <cstdint>

namespace lockstep {

enum class Phase : uint32_t {
  kStarting,
  kData,        // waits for the next batch
  kForward,     // and the loss
  kBackward,    // gradients; finished buckets are on their way
  kWait,        // for other ranks' gradients, or at a meeting of local steps
  kOptimizer,   // norm, clipping, update
  kOther,       // of a step: what comes before and after all these, listeners, checks
  kEvaluation,  // may take long; no other rank is expected to hurry
  kCheckpoint,
  kEnding,
};
inline constexpr int kPhases = 10;
const char* name_of(Phase phase);  // "backward"

}  // namespace lockstep
