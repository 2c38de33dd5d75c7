#include "commands/hosts/stop.h"

#include <algorithm>

#include "base/text.h"
#include "commands/shared/job_arguments.h"
#include "launch/jobs/job_follow.h"
#include "launch/jobs/job_setup.h"

namespace lockstep {

namespace {

// A job without a launcher leaves nothing behind but its key.
int clean_up(FoundJob job) {
  job.record.exit_code = kExitMachine;
  std::vector<const Host*> hosts;
  for (const FoundJob::Place& place : job.places) {
    if (place.saw) hosts.push_back(&place.host);
  }
  std::vector<std::string> errors = end_job(job.record, hosts, job.remote);
  fmt::print("job {} was lost: no launcher of it runs; its key is removed from {} of {} hosts\n",
             job.record.id, hosts.size() - errors.size(), job.places.size());
  for (const FoundJob::Place& place : job.places) {
    if (!place.error.empty()) errors.push_back(place.error);
  }
  if (errors.empty()) return kExitOk;
  MachineError error("{} of {} hosts keep the key until it expires", errors.size(),
                     job.places.size());
  error.set_cause(join(errors, "\n"));
  throw error;
}

void say_the_end(const FoundJob& job, int exit_code) {
  fmt::print("job {} has ended with exit code {}\n", job.record.id, exit_code);
  const std::string checkpoint = newest_checkpoint_of(job);
  if (checkpoint.empty()) return;
  fmt::print("  newest checkpoint: {}\n", checkpoint);
  if (exit_code != kExitOk) fmt::print("  lockstep resume {} goes on from it\n", job.record.id);
}

}  // namespace

int stop_job(const Arguments& arguments) {
  JobArguments given;
  bool kill = false;
  CommandLine app(
      "Stops a job: its ranks save a checkpoint and end, and this waits for it. A job whose\n"
      "launcher is lost is only cleaned up.",
      "lockstep stop");
  app.add_flag("--kill", kill, "kill the ranks at once, without a checkpoint");
  add_job_options(app, given);
  if (!app.parse(arguments)) return kExitOk;
  FoundJob job = find_job(given);
  if (!job.lives()) {
    if (!job.ended()) return clean_up(std::move(job));
    say_the_end(job, job.record.exit_code);
    return kExitOk;
  }
  const FoundJob::Place& launcher = job.launcher();
  if (!launcher.saw) {
    throw MachineError("job {} runs, but the host of its launcher does not answer here: {}",
                       job.record.id, launcher.error);
  }
  FollowOptions options{.host = launcher.host.name, .words = {"job", "stop", job.record.id}};
  if (kill) options.words.push_back("--kill");
  options.on_note = [](const std::string& line) {
    fmt::print(stderr, "lockstep stop: {}\n", line);
  };
  const FollowEnd end = follow_job(job, options);
  if (!end.exit_code) throw lost_job(job, end.lost);
  given.id = job.record.id;
  say_the_end(find_job(given), *end.exit_code);
  return kExitOk;
}

}  // namespace lockstep
