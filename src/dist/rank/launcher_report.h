// Reports to the launcher that started this rank, line by line, through a pipe that the launcher
// left open (LOCKSTEP_REPORT_FD): "first_step 1201", "saved 1300", "told SIGTERM". After progress
// the launcher counts failures anew, and it learns which host was asked to stop.
#pragma once

#include <string_view>

namespace lockstep {

// Never waits: if the launcher does not read, the line is lost. Does nothing where nobody listens.
// Safe to call from any thread.
void tell_launcher(std::string_view line);

}  // namespace lockstep
