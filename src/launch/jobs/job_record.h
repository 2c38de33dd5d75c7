// What is known of a job that goes on without the machine that started it
// (docs/launch.md#jobs-that-go-on-without-you).
//
//   ~/.lockstep/jobs/ID/          on every host of the job
//     job.json                    JobRecord
//     me                          the host's name in it
//     program                     a link to the lockstep that the job began with
//     key, config, known_hosts, door    of ssh, while the job lives (launch/hosts/host_key.h)
//     launcher, agent.NAME        locked by the launcher, and by the agent of a host (job_lock.h)
//     out, err                    on the launcher's host: what the launcher printed
//   ~/.lockstep/known_jobs/ID.json    KnownJob, on the machine that started it
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"

namespace lockstep {

// What a job's record says of the job; whether its launcher lives is asked of the launcher's host.
enum class JobState { kStarting, kRunning, kEnded };

struct JobHost {
  std::string name;      // for messages and commands
  std::string ssh_name;  // what the machine that started the job connected to
  std::string address;   // that the other hosts talk to
  int ranks = 1;
  bool pin = false;
  bool away = false;  // did not answer when its launcher was started
};

struct JobRecord {
  std::string id;                        // "nmt-1c4f"
  std::vector<std::string> command;      // the words after "--": {"train", "nmt.toml", ...}
  std::string program;                   // --program; empty: lockstep itself
  std::vector<std::string> options;      // of launch, as its launcher was started with them
  std::vector<std::string> environment;  // NAME=value, of all ranks
  // Absolute, or "~/..." where each host means its own home.
  std::string folder;      // the working folder
  std::string run_folder;  // empty: the command is no training
  std::vector<JobHost> hosts;
  std::string launcher;  // name of the host that the launcher runs on
  int term = 1;          // counts launchers of the job: a resume adds one, and the highest counts
  JobState state = JobState::kStarting;
  double started = 0, stepped = 0, ended = 0;  // Unix seconds: begun, first step done, over; or 0
  int exit_code = 0;                           // once ended
  std::string message;                         // once ended: why, for a person; empty on success
};

// The record as JSON, and back. job_record_of() throws DataError, which begins with `place`, for a
// text that to_text() did not write.
std::string to_text(const JobRecord& record);
JobRecord job_record_of(const std::string& text, const std::string& place);

const JobHost* host_of_job(const JobRecord& record, const std::string& name);  // null: none
const char* name_of(JobState state);                                           // "running"

// "~/x" in this user's home, as the shell has it; other paths as they are.
std::filesystem::path in_home(const std::string& path);
// ~/.lockstep/jobs, and a job's folder there, of this host.
std::filesystem::path jobs_folder();
std::filesystem::path job_folder(const std::string& id);
// The record of a job of this host. Throws DataError when it is damaged, nothing when there is
// none.
std::optional<JobRecord> read_job_record(const std::string& id);
void write_job_record(const JobRecord& record);

// A job that this machine started: how its hosts are reached from here.
struct KnownJob {
  std::string id;
  HostList hosts;
  RemoteOptions remote;
};
std::string to_text(const KnownJob& job);
KnownJob known_job_of(const std::string& text, const std::string& place);  // throws DataError
// All of ~/.lockstep/known_jobs, by id. What cannot be read is left out.
std::vector<KnownJob> known_jobs();
void write_known_job(const KnownJob& job);

// The ids of the jobs that this host has a folder of.
std::vector<std::string> jobs_of_this_host();

// Whether a text has the form of a job's id: letters, digits and hyphens.
bool is_job_id(const std::string& text);

}  // namespace lockstep
