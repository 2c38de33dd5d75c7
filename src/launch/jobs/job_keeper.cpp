#include "launch/jobs/job_keeper.h"

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/program.h"
#include "base/text.h"
#include "launch/hosts/host_key.h"
#include "launch/jobs/job_host.h"
#include "launch/jobs/job_lock.h"

namespace lockstep {

namespace {

constexpr std::chrono::seconds kToSayTheEnd{20};

JobRecord record_on_host(const std::string& id) {
  if (is_job_id(id)) {
    if (auto record = read_job_record(id)) return *record;
  }
  throw ConfigError("no job \"{}\" on this host", id);
}

}  // namespace

bool travels(std::string_view name) {
  if (name == "OMP_NUM_THREADS") return true;
  for (const char* prefix : {"LOCKSTEP_", "GLOO_", "NCCL_", "TORCH_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

JobKeeper::JobKeeper(const std::string& id) : record_(record_on_host(id)) {
  const fs::path file = job_folder(id) / "launcher";
  std::optional<Descriptor> lock = take_job_lock(file, record_.term);
  if (!lock) throw MachineError("the launcher of job {} runs here already", id);
  lock_ = std::move(*lock);
}

JobKeeper::~JobKeeper() {
  try {
    end(kExitInternal, "its launcher ended by a bug of lockstep");
  } catch (const std::exception&) {  // the lock ends: the job counts as lost
  }
}

HostList JobKeeper::hosts() const {
  HostList out{.hosts = {}, .source = "job " + record_.id};
  for (const JobHost& host : record_.hosts) {
    out.hosts.push_back({.name = host.name,
                         .ssh_name = host.name,
                         .address = host.address,
                         .slots = host.ranks,
                         .pin = host.pin,
                         .away = host.away});
  }
  return out;
}

RemoteOptions JobKeeper::remote() const {
  RemoteOptions out;
  out.ssh_config = (job_folder(record_.id) / "config").string();
  out.door = true;
  return out;
}

std::vector<std::string> JobKeeper::agent_words() const {
  return {"--job",          record_.id, "--launcher",
          record_.launcher, "--term",   std::to_string(record_.term)};
}

void JobKeeper::ranks_run() {
  if (record_.state != JobState::kStarting) return;
  record_.state = JobState::kRunning;
  write_job_record(record_);
}

void JobKeeper::step_done() {
  if (record_.stepped > 0) return;
  record_.stepped = unix_seconds();
  write_job_record(record_);
}

void JobKeeper::end(int exit_code, const std::string& message) {
  if (ended_) return;
  ended_ = true;
  const HostList list = hosts();
  std::vector<RemoteJob> jobs;
  for (const Host& host : list.hosts) {
    if (host.name == record_.launcher) continue;
    jobs.push_back({.host = &host,
                    .shell_text = lockstep_text(
                        remote(), {"job", "end", record_.id, std::to_string(record_.term),
                                   std::to_string(exit_code)})});
  }
  RemoteOptions by_key = remote();
  by_key.connect_seconds = 5;
  try {
    run_jobs(jobs, by_key, {.limit = kToSayTheEnd});
  } catch (const Error&) {  // after a signal, or without processes: the key expires
  }
  end_job_here(record_.id, record_.term, exit_code, message);
}

JobMember::JobMember(const Orders& orders) : record_(record_on_host(orders.id)) {
  if (record_.term > orders.term) {
    throw ConfigError("job {} goes on from {} since (launcher {}, this one is {})", orders.id,
                      record_.launcher, record_.term, orders.term);
  }
  for (const std::string& name : {orders.me, orders.launcher}) {
    if (host_of_job(record_, name) == nullptr) {
      throw ConfigError("job {} has no host \"{}\"", orders.id, name);
    }
  }
  const fs::path folder = job_folder(orders.id);
  const bool newer = record_.term < orders.term;
  if (newer && !end_older_holder(folder / "launcher", orders.term)) {
    throw MachineError("job {}: an older launcher on this host does not end", orders.id);
  }
  // The launcher's host says itself how far it is.
  if (newer || (orders.me != record_.launcher && record_.state == JobState::kStarting)) {
    record_.term = orders.term;
    record_.launcher = orders.launcher;
    record_.state = JobState::kRunning;
    write_job_record(record_);
  }
  const fs::path file = folder / ("agent." + orders.me);
  std::optional<Descriptor> lock = take_job_lock(file, orders.term);
  if (!lock) {
    end_older_holder(file, orders.term + 1);
    lock = take_job_lock(file, orders.term);
  }
  if (!lock) throw MachineError("job {}: an older agent on this host does not end", orders.id);
  lock_ = std::move(*lock);
}

void JobMember::admit(const std::vector<std::string>& command,
                      const std::vector<std::string>& environment) const {
  std::vector<std::string> own = record_.command;
  own.insert(own.begin(), record_.program);
  // A later launcher resumes what an earlier one began.
  std::vector<std::string> resumed = own;
  resumed.push_back("--resume");
  if (command != own && command != resumed) {
    throw ConfigError("this is not the command of job {}: {}", record_.id, join(command, " "));
  }
  for (const std::string& entry : environment) {
    const bool given = std::find(record_.environment.begin(), record_.environment.end(), entry) !=
                       record_.environment.end();
    if (given || travels(entry.substr(0, entry.find('=')))) continue;
    throw ConfigError("job {} has no variable {}", record_.id, entry.substr(0, entry.find('=')));
  }
}

void JobMember::renew_key() const {
  run_to_end({"/bin/sh", "-c", renew_host_key_text(record_.id, kJobKeyDays)});
}

}  // namespace lockstep
