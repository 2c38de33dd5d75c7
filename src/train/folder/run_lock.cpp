#include "train/folder/run_lock.h"

#include <unistd.h>

#include <array>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace lockstep {

namespace {

using Clock = std::chrono::steady_clock;

// Slurm's id is JOB.STEP: steps of one job work for one run.
std::string job_of(const LaunchEnvironment& environment) {
  const std::string& id = environment.run_id;
  return environment.launcher == "Slurm" ? id.substr(0, id.find('.')) : id;
}

std::string host_name(const LaunchEnvironment& environment) {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return environment.host.empty() ? name.data() : environment.host;
}

std::string owner_text(const LaunchEnvironment& environment) {
  const std::string job = job_of(environment);
  return fmt::format("process {} on {}{}", ::getpid(), host_name(environment),
                     job.empty() ? "" : ", job " + job);
}

// The owner writes it just after it has the lock, so it may be empty, or still another's.
std::string read_owner(const fs::path& path) {
  try {
    return std::string(trim(read_file(path)));
  } catch (const Error&) {
    return "";
  }
}

void write_owner(int file, const std::string& text) {
  const bool written = ::ftruncate(file, 0) == 0 && ::pwrite(file, text.data(), text.size(), 0) ==
                                                        static_cast<ssize_t>(text.size());
  if (!written) log_debug("the run folder's lock does not say whose it is: it cannot be written");
}

template <class Failure>
[[noreturn]] void refuse(const RunFolder& folder, const std::string& owner,
                         const std::string& advice) {
  Failure error("{}: another process trains in it", folder.path().string());
  error.set_cause(
      fmt::format("{} holds {}", owner.empty() ? "a process" : owner, folder.lock().string()));
  error.set_advice(advice);
  throw error;
}

[[noreturn]] void refuse(const RunFolder& folder, const LaunchEnvironment& environment) {
  const std::string owner = read_owner(folder.lock()), job = job_of(environment);
  if (!job.empty() && owner.ends_with(", job " + job)) {
    refuse<MachineError>(folder, owner, "start the job again when its former step has ended");
  }
  if (environment_variable("SLURM_ARRAY_TASK_ID")) {
    refuse<ConfigError>(
        folder, owner,
        fmt::format("a folder for each task of a job array: run.folder={}-$SLURM_ARRAY_TASK_ID",
                    folder.path().string()));
  }
  refuse<ConfigError>(folder, owner, "wait until it has ended, or another run.folder");
}

// Returns whether the lock is there; asks for it until `patience` is over.
bool take(FileLock& lock, std::chrono::milliseconds patience) {
  const Clock::time_point end = Clock::now() + patience;
  while (!lock.try_lock()) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

}  // namespace

RunLock::RunLock(const RunFolder& folder, const LaunchEnvironment& environment,
                 std::chrono::milliseconds patience)
    : lock_(folder.lock()) {
  const bool vouched = environment.attempt > 0;
  try {
    if (!take(lock_, std::chrono::milliseconds(0))) {
      if (vouched) return;
      if (patience.count() > 0) {
        log_info("{}: {} trains in it; waiting {} s for its end", folder.path().string(),
                 read_owner(folder.lock()), patience.count() / 1000);
      }
      if (!take(lock_, patience)) refuse(folder, environment);
    }
  } catch (const NoLocks& error) {
    log_info("{}: nothing keeps a second job out of the run folder", error.describe());
    return;
  }
  write_owner(lock_.descriptor(), owner_text(environment) + "\n");
}

}  // namespace lockstep
