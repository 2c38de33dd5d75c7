#include "commands/process/process_setup.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "arrays/cpu_allocator.h"
#include "base/log.h"
#include "base/usable_cores.h"
#include "train/loop/trainer.h"

namespace lockstep {

namespace {

// A launcher, `timeout` or a shell often sends one signal twice, to the process and to its group.
// Signals within a second count as one request, a later one as a second.
extern "C" void note_stop(int signal) {
  static volatile std::sig_atomic_t first_second = 0;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  auto second = static_cast<std::sig_atomic_t>(now.tv_sec);
  if (stop_signal.exchange(signal) == 0) {
    first_second = second;
  } else if (second - first_second > 1) {
    _exit(128 + signal);
  }
}

}  // namespace

namespace {

// Open MPI binds each rank to a core or socket unless told otherwise.
void warn_if_bound(const LaunchEnvironment& environment) {
  auto usable = static_cast<long>(usable_cores().size()), there = ::sysconf(_SC_NPROCESSORS_ONLN);
  bool too_few = usable * environment.local_size < there && usable < there / environment.local_size;
  if (environment.launcher != "Open MPI" || environment.rank != 0 || !too_few) return;
  log_warning(
      "Open MPI bound this rank to {} of {} cores; mpirun --bind-to none gives it its share",
      usable, there);
}

}  // namespace

void prepare_process(const LaunchEnvironment& environment) {
  warn_if_bound(environment);
  use_caching_allocator();
  // A peer that is gone is an error with its name, whatever library writes to it.
  if (environment.size > 1) ::signal(SIGPIPE, SIG_IGN);
  const char* set = std::getenv("OMP_NUM_THREADS");
  int threads =
      set != nullptr ? std::atoi(set) : threads_of_rank(usable_threads(), environment.local_size);
  at::set_num_threads(std::max(1, threads));
}

void handle_stop_signals() {
  struct sigaction action {};
  action.sa_handler = note_stop;
  // SIGUSR1 is what batch systems are often asked to send before the time limit.
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaction(signal, &action, nullptr);
}

}  // namespace lockstep
