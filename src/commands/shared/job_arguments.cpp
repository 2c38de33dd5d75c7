#include "commands/shared/job_arguments.h"

#include <algorithm>

#include "base/text.h"

namespace lockstep {

void add_job_options(CommandLine& app, JobArguments& arguments) {
  app.add_option("job", arguments.id, "the job's id, or its beginning")->required();
  add_host_options(app, arguments.hosts);
}

FoundJob find_job(const JobArguments& arguments) {
  return find_job(arguments.id, read_hosts(arguments.hosts), arguments.hosts.remote);
}

MachineError lost_job(const FoundJob& job, const std::string& why) {
  MachineError error("job {} is lost: no launcher of it runs", job.record.id);
  error.set_cause(why);
  error.set_advice(
      fmt::format("lockstep resume {} goes on from the newest checkpoint", job.record.id));
  return error;
}

std::string newest_checkpoint_of(const FoundJob& job) {
  int64_t newest = -1;
  std::vector<std::string> holders;
  for (const FoundJob::Place& place : job.places) {
    if (!place.saw || place.saw->checkpoint < newest) continue;
    if (place.saw->checkpoint > newest) holders.clear();
    newest = place.saw->checkpoint;
    holders.push_back(place.host.name);
  }
  if (newest < 0) return "";
  return fmt::format("{}/checkpoints/step_{} ({})", job.record.run_folder, newest,
                     join(holders, ", "));
}

}  // namespace lockstep
