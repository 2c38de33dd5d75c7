#include "commands/hosts/detach.h"

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "launch/hosts/host_address.h"
#include "launch/jobs/find_job.h"
#include "launch/jobs/job_setup.h"
#include "train/folder/run_folder.h"

namespace lockstep {

namespace {

// Returns the hosts that answered. Throws for the others unless enough are left, and for another
// version.
std::vector<const HostWithJobs*> hosts_for_job(const std::vector<HostWithJobs>& asked,
                                               int min_hosts) {
  std::vector<const HostWithJobs*> out;
  std::vector<std::string> errors;
  for (const HostWithJobs& host : asked) {
    if (host.error.empty()) {
      out.push_back(&host);
    } else {
      errors.push_back(host.error);
    }
  }
  const std::size_t needed = min_hosts > 0 ? static_cast<std::size_t>(min_hosts) : asked.size();
  if (out.size() < needed) {
    throw MachineError("{} of {} hosts cannot take part\n{}", errors.size(), asked.size(),
                       join(errors, "\n"));
  }
  for (const std::string& error : errors)
    fmt::print(stderr, "lockstep launch: without {}\n", error);
  for (const HostWithJobs* host : out) {
    if (host->says.version == LOCKSTEP_VERSION && host->says.libtorch == libtorch_version())
      continue;
    ConfigError error("host {} has lockstep {} with libtorch {}, this machine {} with {}",
                      host->host->name, host->says.version, host->says.libtorch, LOCKSTEP_VERSION,
                      libtorch_version());
    error.set_advice("lockstep cluster setup brings this machine's version to all hosts");
    throw error;
  }
  return out;
}

JobRecord record_of(const Launch& launch, const DetachWishes& wishes,
                    const std::vector<const HostWithJobs*>& hosts) {
  JobRecord record{.program = launch.command.front()};
  record.command.assign(launch.command.begin() + 1, launch.command.end());
  record.options = wishes.options;
  record.environment = launch.environment;
  record.folder = launch.folder;
  if (!wishes.run_folder.empty()) {
    record.run_folder = (fs::path(launch.folder) / wishes.run_folder).lexically_normal().string();
  }
  for (const HostWithJobs* one : hosts) {
    const Host& host = *one->host;
    record.hosts.push_back(
        {.name = host.name,
         .ssh_name = host.ssh_name,
         .address = address_for_others(host, {one->says.ssh_address, one->says.addresses}),
         .ranks = host.slots,
         .pin = host.pin});
  }
  record.launcher = wishes.from.empty() ? record.hosts.front().name : wishes.from;
  record.started = unix_seconds();
  return record;
}

// How the hosts are reached later: from any folder of this machine, and once the version that
// --push brought is no longer the newest.
RemoteOptions from_anywhere(RemoteOptions remote) {
  if (remote.program.starts_with("~/.lockstep/")) remote.program.clear();
  for (std::string* path : {&remote.key, &remote.ssh_config}) {
    if (!path->empty()) *path = fs::absolute(*path).string();
  }
  return remote;
}

std::vector<const Host*> hosts_of(const std::vector<const HostWithJobs*>& hosts) {
  std::vector<const Host*> out;
  for (const HostWithJobs* host : hosts) out.push_back(host->host);
  return out;
}

// A launcher that could not even begin leaves the end of the job to us; one that another command
// started meanwhile lives on.
void end_unless_it_lives(JobRecord record, int code, const std::vector<const Host*>& hosts,
                         const RemoteOptions& remote) {
  HostList list{.hosts = {}, .source = "its hosts"};
  for (const Host* host : hosts) list.hosts.push_back(*host);
  for (const FoundJob& job : jobs_of(ask_for_jobs(list, remote), remote)) {
    if (job.record.id == record.id && job.lives()) return;
  }
  record.exit_code = code;
  end_job(record, hosts, remote);
}

}  // namespace

void check_from(const std::string& from, const HostList& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts.hosts) {
    if (host.name == from) return;
    names.push_back(host.name);
  }
  throw ConfigError("--from {}: no host of {}{} ({})", from, hosts.source,
                    did_you_mean(from, names), join(names, ", "));
}

int launch_detached(const Launch& launch, const DetachWishes& wishes) {
  const std::vector<HostWithJobs> asked = ask_for_jobs(launch.hosts, launch.remote);
  const std::vector<const HostWithJobs*> hosts = hosts_for_job(asked, wishes.min_hosts);
  JobRecord record = record_of(launch, wishes, hosts);
  const std::vector<FoundJob> others = jobs_of(asked, launch.remote);
  refuse_same_run(record, others);
  std::vector<std::string> taken;
  for (const FoundJob& job : others) taken.push_back(job.record.id);
  for (const KnownJob& job : known_jobs()) taken.push_back(job.id);
  record.id = new_job_id(wishes.name, taken);
  KnownJob known{.id = record.id, .hosts = {}, .remote = from_anywhere(launch.remote)};
  for (const Host* host : hosts_of(hosts)) known.hosts.hosts.push_back(*host);
  const std::vector<std::string> errors = install_job(record, hosts_of(hosts), launch.remote);
  if (!errors.empty()) {
    end_job(record, hosts_of(hosts), launch.remote);
    throw MachineError("{} of {} hosts cannot take part\n{}", errors.size(), hosts.size(),
                       join(errors, "\n"));
  }
  write_known_job(known);
  return start_and_say(record, hosts_of(hosts), launch.remote);
}

int start_and_say(const JobRecord& record, const std::vector<const Host*>& hosts,
                  const RemoteOptions& remote) {
  const auto launcher = std::find_if(
      hosts.begin(), hosts.end(), [&](const Host* host) { return host->name == record.launcher; });
  if (launcher == hosts.end()) throw MachineError("--from {}: it does not answer", record.launcher);
  fmt::print(stderr, "job {}: its launcher starts on {}\n", record.id, record.launcher);
  int code = 0;
  try {
    code = start_job(record, **launcher, remote);
  } catch (Error& error) {
    error.set_advice(fmt::format("lockstep attach {} shows how it goes on", record.id));
    throw;
  }
  if (code != kExitOk) {
    end_unless_it_lives(record, code, hosts, remote);
    fmt::print(stderr, "job {} ended with exit code {}\n", record.id, code);
    return code;
  }
  std::vector<std::string> names;
  for (const JobHost& host : record.hosts) names.push_back(host.name);
  fmt::print(
      "job {0} runs on {1}; its launcher is on {2}, and this machine may go\n"
      "  lockstep attach {0}    what it prints; Ctrl-C leaves it alone\n"
      "  lockstep watch {0}     what every rank does\n"
      "  lockstep fetch {0}     its run folder, from all hosts\n"
      "  lockstep stop {0}      it saves a checkpoint and ends\n"
      "  lockstep jobs{3}       all jobs\n",
      record.id, join(names, ", "), record.launcher, std::string(record.id.size(), ' '));
  return kExitOk;
}

}  // namespace lockstep
