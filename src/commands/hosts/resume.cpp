#include "commands/hosts/resume.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "commands/hosts/detach.h"
#include "commands/shared/job_arguments.h"
#include "commands/shared/job_spending.h"
#include "launch/jobs/job_setup.h"

namespace lockstep {

namespace {

constexpr std::chrono::seconds kPause{1};

// What the job's launcher was started with.
double option_of(const JobRecord& record, const std::string& name, double otherwise) {
  const std::string value = option_of_job(record, name);
  return value.empty() ? otherwise : std::atof(value.c_str());
}

// The agents of a launcher that was lost end by themselves, after --silence and --grace.
std::chrono::duration<double> patience_with_agents(const JobRecord& record) {
  constexpr double kSpare = 10;  // seconds
  return std::chrono::duration<double>(option_of(record, "--silence", 5) +
                                       option_of(record, "--grace", 10) + kSpare);
}

std::vector<std::string> errors_of(const FoundJob& job) {
  std::vector<std::string> out;
  for (const FoundJob::Place& place : job.places) {
    if (!place.error.empty()) out.push_back(place.error);
    if (place.error.empty() && !place.saw) out.push_back(place.host.name + ": has no such job");
  }
  return out;
}

// Throws when a launcher of the job lives: there must never be two.
void refuse_while_it_lives(const FoundJob& job) {
  if (!job.lives()) return;
  const std::string where = job.record.launcher;
  ConfigError error("job {} runs: its launcher is on {}", job.record.id, where);
  if (!job.launcher().saw) {
    error.set_cause(
        fmt::format("{} does not answer here, but agents on other hosts hear it", where));
  }
  error.set_advice(
      fmt::format("lockstep attach {0} shows it, lockstep stop {0} ends it", job.record.id));
  throw error;
}

FoundJob find_without_launcher(const JobArguments& given) {
  FoundJob job = find_job(given);
  const auto start = std::chrono::steady_clock::now();
  const auto patience = patience_with_agents(job.record);
  const auto ending = [&] {
    const auto& saw = job.launcher().saw;
    return job.lives() && !(saw && saw->launcher_lives);
  };
  if (ending()) fmt::print(stderr, "lockstep resume: waiting for its agents to end\n");
  while (ending() && std::chrono::steady_clock::now() - start < patience) {
    std::this_thread::sleep_for(kPause);
    job = find_job(given);
  }
  refuse_while_it_lives(job);
  return job;
}

// Rank 0 is on the first host: those that answer come first, so that one which comes back later
// with an older run folder does not become it.
void put_answering_first(const FoundJob& job, JobRecord& record) {
  for (JobHost& host : record.hosts) host.away = !job.place(host.name).saw.has_value();
  std::stable_partition(record.hosts.begin(), record.hosts.end(),
                        [](const JobHost& host) { return !host.away; });
}

// Returns the hosts that take part. Throws when they are too few.
std::vector<const Host*> hosts_that_answer(const FoundJob& job, int min_hosts) {
  std::vector<const Host*> out;
  for (const FoundJob::Place& place : job.places) {
    if (place.saw) out.push_back(&place.host);
  }
  const std::size_t all = job.places.size();
  const std::size_t needed = min_hosts > 0 ? static_cast<std::size_t>(min_hosts) : all;
  if (out.size() >= needed && !out.empty()) return out;
  MachineError error("job {}: {} of its {} hosts answer, {} are needed\n{}", job.record.id,
                     out.size(), all, needed, join(errors_of(job), "\n"));
  if (!out.empty()) {
    error.set_advice(fmt::format("--min-hosts {} goes on without the others", out.size()));
  }
  throw error;
}

struct ResumeWishes {
  std::string from;
  int min_hosts = 0;
  double budget = 0;  // 0: as the job was started
};

JobRecord next_record(const FoundJob& job, const std::string& from, const ResumeWishes& wishes) {
  JobRecord record = job.record;
  ++record.term;
  record.launcher = from;
  record.state = JobState::kStarting;
  record.stepped = record.ended = 0;
  record.exit_code = 0;
  record.message.clear();
  record.started = unix_seconds();
  if (wishes.min_hosts > 0) {
    set_option_of_job(record, "--min-hosts", std::to_string(wishes.min_hosts));
  }
  if (wishes.budget > 0) set_option_of_job(record, "--budget", fmt::format("{}", wishes.budget));
  if (const auto spent = spent_on_job(job)) {
    set_option_of_job(record, "--spent", fmt::format("{:.6f}", *spent));
  }
  if (std::find(record.command.begin(), record.command.end(), "--resume") == record.command.end()) {
    record.command.push_back("--resume");
  }
  put_answering_first(job, record);
  return record;
}

const Host& launcher_host(const std::vector<const Host*>& answering, const FoundJob& job,
                          const std::string& wanted) {
  if (wanted.empty()) return *answering.front();
  std::vector<std::string> names;
  for (const Host* host : answering) {
    if (host->name == wanted) return *host;
    names.push_back(host->name);
  }
  const bool known = host_of_job(job.record, wanted) != nullptr;
  throw ConfigError("--from {}: {}{} ({})", wanted,
                    known ? "it does not answer" : "no host of the job",
                    known ? "" : did_you_mean(wanted, names), join(names, ", "));
}

}  // namespace

int resume_job(const Arguments& arguments) {
  JobArguments given;
  ResumeWishes wishes;
  CommandLine app(
      "Goes on with a job that was stopped, or whose launcher was lost with its host: a launcher\n"
      "starts on a host that answers, from the newest checkpoint that any of them has.",
      "lockstep resume");
  app.add_option("--from", wishes.from, "the host for the launcher (the first that answers)");
  app.add_option("--min-hosts", wishes.min_hosts, "go on with so many (as the job was started)")
      ->non_negative();
  app.add_option("--budget", wishes.budget, "of all its launches (as the job was started)")
      ->positive();
  add_job_options(app, given);
  if (!app.parse(arguments)) return kExitOk;
  const FoundJob job = find_without_launcher(given);
  if (job.record.run_folder.empty()) {
    throw ConfigError("job {} is no training that could go on: {}", job.record.id,
                      join(job.record.command, " "));
  }
  if (job.ended() && job.record.exit_code == kExitOk) {
    throw ConfigError("job {} has done all its steps: its exit code was 0", job.record.id);
  }
  if (wishes.budget > 0 && option_of_job(job.record, "--price").empty()) {
    throw ConfigError("--budget {:g}: job {} was started without --price", wishes.budget,
                      job.record.id);
  }
  if (wishes.min_hosts == 0) {
    wishes.min_hosts = static_cast<int>(option_of(job.record, "--min-hosts", 0));
  }
  const std::vector<const Host*> answering = hosts_that_answer(job, wishes.min_hosts);
  const Host& launcher = launcher_host(answering, job, wishes.from);
  for (const std::string& error : errors_of(job)) {
    fmt::print(stderr, "lockstep resume: without {}\n", error);
  }
  const JobRecord record = next_record(job, launcher.name, wishes);
  // The key of a job that ended was removed; a lost host would not get a new one.
  const std::vector<std::string> failures = job.ended()
                                                ? install_job(record, answering, job.remote)
                                                : rewrite_job(record, answering, job.remote);
  if (!failures.empty()) throw MachineError("{}", join(failures, "\n"));
  return start_and_say(record, answering, job.remote);
}

}  // namespace lockstep
