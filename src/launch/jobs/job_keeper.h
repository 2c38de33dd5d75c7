// The parts that a job's launcher and agents have in the job beside their work: who may run, what
// the record says, how long the key lives.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts/host_list.h"
#include "launch/jobs/job_record.h"
#include "launch/processes/descriptor.h"

namespace lockstep {

inline constexpr int kJobKeyDays = 30;  // agents renew it every day

// Held by the launcher of a job: the only one on this host, and its record.
class JobKeeper {
 public:
  // Throws ConfigError when this host has no such job, MachineError when its launcher runs already.
  explicit JobKeeper(const std::string& id);
  // A launcher that did not say how it ended ended by an error of ours.
  ~JobKeeper();
  JobKeeper(const JobKeeper&) = delete;
  JobKeeper& operator=(const JobKeeper&) = delete;

  const JobRecord& record() const { return record_; }
  // The hosts as the launcher reaches them, and how: by the job's key.
  HostList hosts() const;
  RemoteOptions remote() const;
  std::vector<std::string> agent_words() const;  // further ones for each agent

  void ranks_run();  // the ranks have been told to start
  void step_done();  // the first one
  // The job is over: says so on all hosts, and removes the key there. Those that do not answer keep
  // it until it expires.
  void end(int exit_code, const std::string& message);

 private:
  JobRecord record_;
  Descriptor lock_;
  bool ended_ = false;
};

// Held by an agent of a job: it obeys the newest launcher and starts the job's command alone.
class JobMember {
 public:
  // `me`: this host's name in the job; `launcher`: that of the host from which the launcher of
  // `term` gives orders. An older agent of this host and an older launcher here are ended. Throws
  // ConfigError for an unknown job, and when a newer launcher has taken over.
  struct Orders {
    std::string id, me, launcher;
    int term = 0;
  };
  explicit JobMember(const Orders& orders);

  // Throws ConfigError unless this is the job's command, and the environment that it travels with.
  void admit(const std::vector<std::string>& command,
             const std::vector<std::string>& environment) const;
  void renew_key() const;  // to kJobKeyDays from now

 private:
  JobRecord record_;
  Descriptor lock_;
};

// Whether a variable with this name goes from the launcher to all hosts by itself.
bool travels(std::string_view name);

}  // namespace lockstep
