#include "commands/hosts/attach.h"

#include <algorithm>

#include "commands/shared/job_arguments.h"
#include "launch/jobs/job_follow.h"

namespace lockstep {

namespace {

// The exit code of a job that was followed to its end.
int code_of(const FoundJob& job, const FollowEnd& end) {
  if (!end.exit_code) throw lost_job(job, end.lost);
  fmt::print(stderr, "job {} has ended with exit code {}\n", job.record.id, *end.exit_code);
  return *end.exit_code;
}

}  // namespace

int attach(const Arguments& arguments) {
  JobArguments given;
  int lines = 10;
  CommandLine app(
      "Shows what a job prints, from now on, until it ends, and exits with its exit code. Ctrl-C\n"
      "leaves the job alone. A connection that breaks is made again.",
      "lockstep attach");
  app.add_option("--lines", lines, "show so many lines of before first (10)")->non_negative();
  add_job_options(app, given);
  if (!app.parse(arguments)) return kExitOk;
  const FoundJob job = find_job(given);
  const FoundJob::Place& launcher = job.launcher();
  if (!launcher.saw) {
    if (!job.lives()) throw lost_job(job, launcher.error);
    throw MachineError("job {} runs, but the host of its launcher does not answer here: {}",
                       job.record.id, launcher.error);
  }
  try {
    const FollowEnd end = follow_job(
        job, {.host = launcher.host.name,
              .words = {"job", "output", job.record.id, "--lines", std::to_string(lines)},
              .on_note = [](const std::string& line) {
                fmt::print(stderr, "lockstep attach: {}\n", line);
              }});
    return code_of(job, end);
  } catch (const Error& error) {
    if (error.exit_code() <= 128) throw;
    fmt::print(stderr, "\nlockstep attach: left job {}, which goes on\n", job.record.id);
    return error.exit_code();
  }
}

}  // namespace lockstep
