#include "launch/jobs/job_sighting.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "dist/rank/network.h"
#include "launch/hosts/host_address.h"
#include "launch/jobs/job_lock.h"
#include "train/folder/run_folder.h"

namespace lockstep {

namespace {

using SightJson = nlohmann::ordered_json;

constexpr std::string_view kMark = "lockstep-jobs ";  // begins the line

double unix_time_of(const fs::path& file) {
  std::error_code none;
  const auto time = fs::last_write_time(file, none);
  if (none) return 0;
  const auto there = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration<double>(there).count();
}

// The number that ends a name: 1200 of "step_1200", 3 of "rank03"; -1 for other names.
int64_t number_after(const std::string& name, std::string_view start) {
  int64_t number = -1;
  if (!name.starts_with(start)) return -1;
  const char* end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + start.size(), end, number);
  return read.ec == std::errc() && read.ptr == end ? number : -1;
}

void look_at_run(const RunFolder& run, JobSighting& out) {
  std::error_code none;
  if (fs::exists(run.live(), none)) {
    const auto live = SightJson::parse(read_file(run.live()), nullptr, false);
    if (live.is_object()) out.step = live.value("step", int64_t{-1});
    out.live_time = unix_time_of(run.live());
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(run.checkpoints(), none)) {
    if (!fs::exists(entry.path() / "DONE", none)) continue;
    out.checkpoint =
        std::max(out.checkpoint, number_after(entry.path().filename().string(), "step_"));
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(run.logs(), none)) {
    if (entry.path().extension() != ".log") continue;
    const int64_t rank = number_after(entry.path().stem().string(), "rank");
    if (rank >= 0) out.logs[static_cast<int>(rank)] = unix_time_of(entry.path());
  }
}

JobSighting look_at_job(JobRecord record) {
  JobSighting out{.record = std::move(record), .me = ""};
  const fs::path folder = job_folder(out.record.id);
  if (fs::exists(folder / "me")) out.me = trim(read_file(folder / "me"));
  out.launcher_lives = job_lock_holder(folder / "launcher").has_value();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const bool of_agent = entry.path().filename().string().starts_with("agent.");
    if (of_agent && job_lock_holder(entry.path())) out.agent_lives = true;
  }
  if (!out.record.run_folder.empty()) look_at_run(RunFolder(in_home(out.record.run_folder)), out);
  return out;
}

}  // namespace

HostSighting look_at_jobs() {
  HostSighting out{.version = LOCKSTEP_VERSION,
                   .libtorch = libtorch_version(),
                   .ssh_address = own_ssh_address(),
                   .addresses = own_addresses()};
  for (const std::string& id : jobs_of_this_host()) {
    try {
      if (auto record = read_job_record(id)) out.jobs.push_back(look_at_job(std::move(*record)));
    } catch (const Error&) {  // of another version
    } catch (const fs::filesystem_error&) {
    }
  }
  return out;
}

std::string to_text(const HostSighting& sighting) {
  SightJson json = {{"version", sighting.version},
                    {"libtorch", sighting.libtorch},
                    {"ssh_address", sighting.ssh_address},
                    {"addresses", sighting.addresses},
                    {"jobs", SightJson::array()}};
  for (const JobSighting& job : sighting.jobs) {
    SightJson logs = SightJson::object();
    for (const auto& [rank, time] : job.logs) logs[std::to_string(rank)] = time;
    json["jobs"].push_back({{"record", SightJson::parse(to_text(job.record))},
                            {"me", job.me},
                            {"launcher_lives", job.launcher_lives},
                            {"agent_lives", job.agent_lives},
                            {"step", job.step},
                            {"checkpoint", job.checkpoint},
                            {"live_time", job.live_time},
                            {"logs", std::move(logs)}});
  }
  return std::string(kMark) + json.dump() + "\n";
}

HostSighting host_sighting_of(const std::string& text) {
  const std::size_t at = ("\n" + text).find("\n" + std::string(kMark));
  if (at == std::string::npos) throw MachineError("it says nothing of its jobs");
  const std::size_t begin = at + kMark.size();
  HostSighting out;
  try {
    const SightJson json = SightJson::parse(text.substr(begin, text.find('\n', begin) - begin));
    out.version = json.at("version").get<std::string>();
    out.libtorch = json.at("libtorch").get<std::string>();
    out.ssh_address = json.at("ssh_address").get<std::string>();
    out.addresses = json.at("addresses").get<std::vector<std::string>>();
    for (const SightJson& entry : json.at("jobs")) {
      JobSighting& job = out.jobs.emplace_back();
      job.record = job_record_of(entry.at("record").dump(), "job list");
      job.me = entry.at("me").get<std::string>();
      job.launcher_lives = entry.at("launcher_lives").get<bool>();
      job.agent_lives = entry.at("agent_lives").get<bool>();
      job.step = entry.at("step").get<int64_t>();
      job.checkpoint = entry.at("checkpoint").get<int64_t>();
      job.live_time = entry.at("live_time").get<double>();
      for (const auto& [rank, time] : entry.at("logs").items()) {
        job.logs[std::atoi(rank.c_str())] = time.get<double>();
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw MachineError("it says of its jobs what this version does not read: {}", error.what());
  }
  return out;
}

}  // namespace lockstep
