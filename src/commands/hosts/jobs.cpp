#include "commands/hosts/jobs.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/table.h"
#include "base/text.h"
#include "commands/shared/host_arguments.h"
#include "commands/shared/job_spending.h"
#include "launch/jobs/find_job.h"

namespace lockstep {

namespace {

using JobRows = std::vector<std::vector<std::string>>;

constexpr double kShownFor = 7 * 86400;  // seconds after the end, without --all

std::string hosts_text(const FoundJob& job) {
  std::vector<std::string> out;
  for (const FoundJob::Place& place : job.places) {
    out.push_back(place.error.empty() ? place.host.name : place.host.name + "?");
  }
  return join(out, ",");
}

std::string step_text(const FoundJob& job) {
  double newest = 0;
  int64_t step = -1;
  for (const FoundJob::Place& place : job.places) {
    if (!place.saw || place.saw->step < 0 || place.saw->live_time < newest) continue;
    newest = place.saw->live_time;
    step = place.saw->step;
  }
  return step < 0 ? "-" : with_commas(step);
}

std::string spent_text(const FoundJob& job) {
  const std::optional<double> spent = spent_on_job(job);
  if (!spent) return "-";
  const double budget = std::atof(option_of_job(job.record, "--budget").c_str());
  return budget > 0 ? fmt::format("{:.2f}/{:.2f}", *spent, budget) : fmt::format("{:.2f}", *spent);
}

void add_row(const FoundJob& job, bool all, JobRows& rows) {
  const JobRecord& record = job.record;
  const bool over = job.ended() && !job.lives();
  const double since = over ? record.ended : record.started;
  if (over && !all && unix_seconds() - since > kShownFor) return;
  rows.push_back({record.id, job.state(), short_duration(unix_seconds() - since), step_text(job),
                  spent_text(job), record.launcher, hosts_text(job), join(record.command, " ")});
}

// Asks the hosts once, however many jobs they have.
std::vector<std::pair<HostList, RemoteOptions>> known_hosts() {
  std::map<std::string, std::pair<HostList, RemoteOptions>> out;
  for (KnownJob job : known_jobs()) {
    job.id = "any";
    out.emplace(to_text(job), std::pair{job.hosts, job.remote});
  }
  std::vector<std::pair<HostList, RemoteOptions>> groups;
  for (auto& [text, group] : out) groups.push_back(std::move(group));
  return groups;
}

}  // namespace

int list_jobs(const Arguments& arguments) {
  HostArguments given;
  bool all = false;
  CommandLine app(
      "Lists the jobs that launch --detach started, and how they are: those started from this\n"
      "machine, or with -H, --hosts or --instances those of these hosts.",
      "lockstep jobs");
  app.add_flag("--all", all, "also those that ended more than a week ago");
  add_host_options(app, given);
  if (!app.parse(arguments)) return kExitOk;
  std::vector<std::pair<HostList, RemoteOptions>> groups = {{read_hosts(given), given.remote}};
  if (groups.front().first.hosts.empty()) groups = known_hosts();

  JobRows rows = {{"job", "state", "for", "step", "spent", "launcher", "hosts", "command"}};
  std::vector<std::string> errors;
  std::map<std::string, FoundJob> jobs;
  for (const auto& [hosts, remote] : groups) {
    const std::vector<HostWithJobs> asked = ask_for_jobs(hosts, remote);
    for (const HostWithJobs& host : asked) {
      if (!host.error.empty()) errors.push_back(host.error);
    }
    for (FoundJob& job : jobs_of(asked, remote)) jobs.emplace(job.record.id, std::move(job));
  }
  for (const auto& [id, job] : jobs) add_row(job, all, rows);
  if (rows.size() > 1) {
    fmt::print("{}", format_table(rows, "  rrr   "));
  } else {
    fmt::print("no jobs{}\n", groups.empty() ? " were started here; -H a,b asks hosts" : "");
  }
  std::sort(errors.begin(), errors.end());
  errors.erase(std::unique(errors.begin(), errors.end()), errors.end());
  for (const std::string& error : errors) fmt::print(stderr, "no answer: {}\n", error);
  return errors.empty() ? static_cast<int>(kExitOk) : static_cast<int>(kExitMachine);
}

}  // namespace lockstep
