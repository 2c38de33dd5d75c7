#include "commands/hosts/logs.h"

#include <algorithm>

#include "base/text.h"
#include "commands/shared/job_arguments.h"
#include "launch/jobs/job_follow.h"

namespace lockstep {

namespace {

// The host that has the rank's log, or the newest where the rank moved.
const FoundJob::Place& place_of_log(const FoundJob& job, int rank) {
  const FoundJob::Place* newest = nullptr;
  std::vector<std::string> errors, ranks;
  for (const FoundJob::Place& place : job.places) {
    if (!place.error.empty()) errors.push_back(place.error);
    if (!place.saw) continue;
    for (const auto& [number, time] : place.saw->logs) ranks.push_back(std::to_string(number));
    const auto log = place.saw->logs.find(rank);
    if (log == place.saw->logs.end()) continue;
    if (newest == nullptr || log->second > newest->saw->logs.at(rank)) newest = &place;
  }
  if (newest != nullptr) return *newest;
  if (!errors.empty()) throw MachineError("{}", join(errors, "\n"));
  ConfigError error("job {}: no log of rank {}", job.record.id, rank);
  if (!ranks.empty()) error.set_cause("there are logs of ranks " + join(ranks, ", "));
  throw error;
}

}  // namespace

int logs(const Arguments& arguments) {
  JobArguments given;
  int rank = -1, lines = -1;
  bool follow = false;
  CommandLine app("Shows what a job printed: all that its launcher showed, or the log of a rank.",
                  "lockstep logs");
  app.add_option("--rank", rank, "the log of this rank, from its host")->non_negative();
  app.add_option("--lines", lines, "only the last so many lines")->non_negative();
  app.add_flag("-f,--follow", follow, "and what comes, until the job ends");
  add_job_options(app, given);
  if (!app.parse(arguments)) return kExitOk;
  const FoundJob job = find_job(given);
  const FoundJob::Place& place = rank >= 0 ? place_of_log(job, rank) : job.launcher();
  if (!place.saw) throw MachineError("{}", place.error);
  FollowOptions options{.host = place.host.name,
                        .words = {"job", "output", job.record.id},
                        .rank = rank,
                        .follow = follow};
  options.words.insert(options.words.end(), {"--lines", std::to_string(lines)});
  if (rank >= 0) options.words.insert(options.words.end(), {"--rank", std::to_string(rank)});
  if (!follow) options.words.push_back("--once");
  options.on_note = [](const std::string& line) {
    fmt::print(stderr, "lockstep logs: {}\n", line);
  };
  const FollowEnd end = follow_job(job, options);
  if (!end.lost.empty()) throw lost_job(job, end.lost);
  return kExitOk;
}

}  // namespace lockstep
