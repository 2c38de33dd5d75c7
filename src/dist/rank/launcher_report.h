// What a rank tells the launcher that started it, a line at a time, through a pipe that the
// launcher left open (LOCKSTEP_REPORT_FD): "first_step 1201", "saved 1300", "told SIGTERM". The
// launcher counts failures anew after progress and knows by it which host was asked to go.
#pragma once

#include <string_view>

namespace lockstep {

// Never waits: a launcher that does not read misses it. Of no effect where nobody listens.
// Safe to call from any thread.
void tell_launcher(std::string_view line);

}  // namespace lockstep
