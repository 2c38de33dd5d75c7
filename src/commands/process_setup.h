// What the commands that compute share: threads, memory, signals, the words key=value.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dist/rank/launch_environment.h"

namespace lockstep {

// Number of threads (OMP_NUM_THREADS, else those that find a core, base/usable_cores.h, over this
// host's ranks) and the allocator that keeps its memory. Call before the first tensor.
void prepare_process(const LaunchEnvironment& environment);

// SIGTERM and SIGINT set stop_signal; one more, later than a second after, ends the
// process at once.
void handle_stop_signals();

// Words with a '=' before any '/' or blank are settings; the rest stay.
std::vector<std::string> take_settings(std::vector<std::string>& words);

}  // namespace lockstep
