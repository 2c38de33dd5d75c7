// Sets up processes that compute: threads, memory, signals.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dist/rank/launch_environment.h"

namespace lockstep {

// Sets the number of threads (OMP_NUM_THREADS, else the threads that find a core,
// base/usable_cores.h, divided by the ranks of this host) and the allocator that keeps its memory.
// Call this before the first tensor is made.
void prepare_process(const LaunchEnvironment& environment);

// Makes SIGTERM and SIGINT set stop_signal; another one, more than a second later, ends the process
// at once.
void handle_stop_signals();

}  // namespace lockstep
