#include "launch/jobs/job_record.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {

namespace {

using JobJson = nlohmann::ordered_json;

constexpr std::array<const char*, 3> kStates = {"starting", "running", "ended"};

JobState state_of(const std::string& name) {
  for (std::size_t i = 0; i < kStates.size(); ++i) {
    if (name == kStates[i]) return static_cast<JobState>(i);
  }
  throw DataError("no state of a job: \"{}\"", name);
}

// Visit the fields, to write and to read them.
template <typename Host, typename Visitor>
void visit_job_host(Host& h, Visitor&& f) {
  f("name", h.name);
  f("ssh_name", h.ssh_name);
  f("address", h.address);
  f("ranks", h.ranks);
  f("pin", h.pin);
  f("away", h.away);
}

template <typename Record, typename Visitor>
void visit_job(Record& r, Visitor&& f) {
  f("id", r.id);
  f("command", r.command);
  f("program", r.program);
  f("options", r.options);
  f("environment", r.environment);
  f("folder", r.folder);
  f("run_folder", r.run_folder);
  f("hosts", r.hosts);
  f("launcher", r.launcher);
  f("term", r.term);
  f("state", r.state);
  f("started", r.started);
  f("stepped", r.stepped);
  f("ended", r.ended);
  f("exit_code", r.exit_code);
  f("message", r.message);
}

template <typename Entry, typename Visitor>
void visit_known_host(Entry& h, Visitor&& f) {
  f("name", h.name);
  f("ssh_name", h.ssh_name);
  f("address", h.address);
  f("ranks", h.slots);
  f("pin", h.pin);
  f("by_ssh", h.by_ssh);
}

template <typename Remote, typename Visitor>
void visit_remote(Remote& r, Visitor&& f) {
  f("ssh", r.ssh);
  f("config", r.ssh_config);
  f("port", r.port);
  f("user", r.user);
  f("key", r.key);
  f("options", r.extra);
  f("connect_seconds", r.connect_seconds);
  f("program", r.program);
}

struct JobWriter {
  JobJson json = JobJson::object();

  template <typename Value>
  void operator()(const char* key, const Value& value) {
    json[key] = value;
  }
  void operator()(const char* key, JobState state) { json[key] = name_of(state); }
  void operator()(const char* key, const std::vector<JobHost>& hosts) {
    json[key] = JobJson::array();
    for (const JobHost& host : hosts) {
      JobWriter inner;
      visit_job_host(host, inner);
      json[key].push_back(std::move(inner.json));
    }
  }
};

struct JobReader {
  const JobJson& json;

  template <typename Value>
  void operator()(const char* key, Value& value) const {
    value = json.at(key).get<Value>();
  }
  void operator()(const char* key, JobState& state) const {
    state = state_of(json.at(key).get<std::string>());
  }
  void operator()(const char* key, std::vector<JobHost>& hosts) const {
    for (const JobJson& entry : json.at(key)) {
      visit_job_host(hosts.emplace_back(), JobReader{entry});
    }
  }
};

// Paths and words may be bytes that are not UTF-8, which JSON cannot hold.
std::string dump(const JobJson& json, const std::string& id) {
  try {
    return json.dump(2) + "\n";
  } catch (const nlohmann::json::type_error&) {
    throw ConfigError("job {}: a word of the command or a path is not UTF-8", id);
  }
}

template <typename Read>
void read_job_json(const std::string& text, const std::string& place, const Read& read) {
  try {
    read(JobJson::parse(text));
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{}: no record of a job: {}", place, error.what());
  } catch (DataError& error) {
    throw DataError("{}: {}", place, error.what());
  }
}

fs::path own_home() {
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') return home;
  const passwd* user = ::getpwuid(::getuid());
  return user != nullptr ? user->pw_dir : "/";
}

fs::path known_jobs_folder() { return own_home() / ".lockstep/known_jobs"; }

}  // namespace

const char* name_of(JobState state) { return kStates[static_cast<std::size_t>(state)]; }

std::string to_text(const JobRecord& record) {
  JobWriter writer;
  visit_job(record, writer);
  return dump(writer.json, record.id);
}

JobRecord job_record_of(const std::string& text, const std::string& place) {
  JobRecord out;
  read_job_json(text, place, [&](const JobJson& json) { visit_job(out, JobReader{json}); });
  if (!is_job_id(out.id)) throw DataError("{}: \"{}\" is no id of a job", place, out.id);
  return out;
}

const JobHost* host_of_job(const JobRecord& record, const std::string& name) {
  for (const JobHost& host : record.hosts) {
    if (host.name == name) return &host;
  }
  return nullptr;
}

fs::path in_home(const std::string& path) {
  if (path == "~") return own_home();
  return path.starts_with("~/") ? own_home() / path.substr(2) : fs::path(path);
}

fs::path jobs_folder() { return own_home() / ".lockstep/jobs"; }
fs::path job_folder(const std::string& id) { return jobs_folder() / id; }

std::vector<std::string> jobs_of_this_host() {
  std::vector<std::string> out;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(jobs_folder(), none)) {
    const std::string name = entry.path().filename().string();
    if (is_job_id(name) && fs::exists(entry.path() / "job.json")) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<JobRecord> read_job_record(const std::string& id) {
  const fs::path path = job_folder(id) / "job.json";
  if (!fs::exists(path)) return std::nullopt;
  return job_record_of(read_file(path), path.string());
}

void write_job_record(const JobRecord& record) {
  write_file(job_folder(record.id) / "job.json", to_text(record));
}

std::string to_text(const KnownJob& job) {
  JobJson json = {{"id", job.id}, {"hosts", JobJson::array()}};
  for (const Host& host : job.hosts.hosts) {
    JobWriter writer;
    visit_known_host(host, writer);
    json["hosts"].push_back(std::move(writer.json));
  }
  JobWriter remote;
  visit_remote(job.remote, remote);
  json["ssh"] = std::move(remote.json);
  return dump(json, job.id);
}

KnownJob known_job_of(const std::string& text, const std::string& place) {
  KnownJob out;
  read_job_json(text, place, [&](const JobJson& json) {
    out.id = json.at("id").get<std::string>();
    for (const JobJson& entry : json.at("hosts")) {
      visit_known_host(out.hosts.hosts.emplace_back(), JobReader{entry});
    }
    visit_remote(out.remote, JobReader{json.at("ssh")});
  });
  if (!is_job_id(out.id)) throw DataError("{}: \"{}\" is no id of a job", place, out.id);
  out.hosts.source = place;
  return out;
}

std::vector<KnownJob> known_jobs() {
  std::vector<KnownJob> out;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(known_jobs_folder(), none)) {
    if (entry.path().extension() != ".json") continue;
    try {
      out.push_back(known_job_of(read_file(entry.path()), entry.path().string()));
    } catch (const Error&) {  // of another version, or being written
    }
  }
  std::sort(out.begin(), out.end(),
            [](const KnownJob& a, const KnownJob& b) { return a.id < b.id; });
  return out;
}

void write_known_job(const KnownJob& job) {
  fs::create_directories(known_jobs_folder());
  write_file(known_jobs_folder() / (job.id + ".json"), to_text(job));
}

bool is_job_id(const std::string& text) {
  constexpr std::size_t kLongest = 64;
  return !text.empty() && text.size() <= kLongest && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

}  // namespace lockstep
