#include "launch/jobs/find_job.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::chrono::seconds kListPatience{30};

// Returns the id that begins so.
std::string whole_id(const std::string& beginning, const std::vector<std::string>& ids,
                     const std::string& where) {
  if (std::find(ids.begin(), ids.end(), beginning) != ids.end()) return beginning;
  std::vector<std::string> begin_so;
  for (const std::string& id : ids) {
    if (id.starts_with(beginning)) begin_so.push_back(id);
  }
  if (begin_so.size() == 1 && !beginning.empty()) return begin_so.front();
  if (begin_so.size() > 1) {
    throw ConfigError("job \"{}\": several begin so: {}", beginning, join(begin_so, ", "));
  }
  ConfigError error("no job \"{}\" {}{}", beginning, where, did_you_mean(beginning, ids));
  if (!ids.empty()) error.set_cause("there: " + join(ids, ", "));
  error.set_advice("lockstep jobs lists them; -H a,b asks these hosts");
  throw error;
}

// The record of the newest launcher; of one launcher, its own host's.
bool is_better(const JobSighting& a, const JobSighting& b) {
  if (a.record.term != b.record.term) return a.record.term > b.record.term;
  const bool a_own = a.me == a.record.launcher, b_own = b.me == b.record.launcher;
  if (a_own != b_own) return a_own;
  return a.record.state > b.record.state;
}

struct Sighting {
  const HostWithJobs* from;
  const JobSighting* job;
};

FoundJob put_together(const std::vector<Sighting>& sightings,
                      const std::vector<HostWithJobs>& asked, const RemoteOptions& remote) {
  const auto best = std::max_element(
      sightings.begin(), sightings.end(),
      [](const Sighting& a, const Sighting& b) { return is_better(*b.job, *a.job); });
  FoundJob out{.record = best->job->record, .remote = remote, .places = {}};
  for (const JobHost& host : out.record.hosts) {
    FoundJob::Place place{.host = {.name = host.name,
                                   .ssh_name = host.ssh_name,
                                   .address = host.address,
                                   .by_ssh = host.ssh_name != host.name},
                          .error = host.name + ": was not asked",
                          .saw = {}};
    for (const HostWithJobs& one : asked) {
      if (one.host->name != host.name && one.host->ssh_name != host.ssh_name) continue;
      place.host = *one.host;
      place.error = one.error;
    }
    for (const Sighting& sighting : sightings) {
      if (sighting.job->me != host.name) continue;
      place.host = *sighting.from->host;
      place.error.clear();
      place.saw = *sighting.job;
    }
    place.host.name = host.name;
    out.places.push_back(std::move(place));
  }
  return out;
}

}  // namespace

std::vector<HostWithJobs> ask_for_jobs(const HostList& hosts, const RemoteOptions& remote) {
  std::vector<HostWithJobs> out;
  for (const RemoteResult& result :
       run_on_hosts(hosts, remote, lockstep_text(remote, {"job", "list"}), kListPatience)) {
    HostWithJobs& host = out.emplace_back();
    host.host = result.host;
    try {
      if (result.status != 0) throw remote_error(*result.host, result.status, result.error);
      host.says = host_sighting_of(result.output);
    } catch (const MachineError& error) {
      host.error = error.describe();
      if (result.status == 0) host.error = result.host->name + ": " + host.error;
    }
  }
  return out;
}

const FoundJob::Place& FoundJob::place(const std::string& name) const {
  for (const Place& place : places) {
    if (place.host.name == name) return place;
  }
  throw MachineError("job {} has no host {}", record.id, name);
}

bool FoundJob::lives() const {
  return std::any_of(places.begin(), places.end(), [](const Place& place) {
    return place.saw && (place.saw->launcher_lives || place.saw->agent_lives);
  });
}

std::string FoundJob::state() const {
  if (lives()) {
    const bool trains = !record.run_folder.empty() && record.stepped == 0;
    return trains && launcher().saw ? "starting" : "running";
  }
  return ended() ? fmt::format("ended: {}", record.exit_code) : "lost";
}

std::vector<FoundJob> jobs_of(const std::vector<HostWithJobs>& asked, const RemoteOptions& remote) {
  std::map<std::string, std::vector<Sighting>> by_id;
  for (const HostWithJobs& host : asked) {
    for (const JobSighting& job : host.says.jobs) by_id[job.record.id].push_back({&host, &job});
  }
  std::vector<FoundJob> out;
  for (const auto& [id, sightings] : by_id) out.push_back(put_together(sightings, asked, remote));
  return out;
}

FoundJob find_job(const std::string& id, const HostList& hosts, const RemoteOptions& remote) {
  KnownJob known{.id = id, .hosts = hosts, .remote = remote};
  std::string whole = id;
  if (hosts.hosts.empty()) {
    const std::vector<KnownJob> all = known_jobs();
    std::vector<std::string> ids;
    for (const KnownJob& job : all) ids.push_back(job.id);
    whole = whole_id(id, ids, "was started here");
    known = *std::find_if(all.begin(), all.end(), [&](const auto& job) { return job.id == whole; });
  }
  const std::vector<HostWithJobs> asked = ask_for_jobs(known.hosts, known.remote);
  std::vector<FoundJob> jobs = jobs_of(asked, known.remote);
  std::vector<std::string> ids, errors;
  for (const FoundJob& job : jobs) ids.push_back(job.record.id);
  for (const HostWithJobs& host : asked) {
    if (!host.error.empty()) errors.push_back(host.error);
  }
  if (errors.size() == asked.size()) {
    throw MachineError("job {}: none of its hosts answers\n{}", whole, join(errors, "\n"));
  }
  whole = whole_id(whole, ids, "on " + known.hosts.source);
  const auto found = std::find_if(jobs.begin(), jobs.end(),
                                  [&](const auto& job) { return job.record.id == whole; });
  return *found;
}

}  // namespace lockstep
