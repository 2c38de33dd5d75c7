// Starts Slurm of Debian's packages for a test: the controller in the control host, a node in each
// of some virtual hosts that share nothing. Configuration, key, state and logs are in a temporary
// folder, and all processes end with the lab.
//
//   TEST_F(Slurm, RunsATask) {
//     SKIP_WITHOUT_SLURM();
//     SlurmCluster cluster(folder_->path(), {"n1", "n2"});
//     EXPECT_EQ(cluster.run("srun -N 2 hostname").first, 0);
//   }
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/unshared_lab.h"
#include "support/virtual_hosts.h"

namespace lockstep {

// Returns the first program of Slurm's that is not installed; empty when all are.
inline std::string absent_slurm_program() {
  for (const char* program : {"/usr/sbin/munged", "/usr/sbin/slurmctld", "/usr/sbin/slurmd",
                              "/usr/bin/srun", "/usr/bin/sbatch"}) {
    if (::access(program, X_OK) != 0) return program;
  }
  return "";
}

}  // namespace lockstep

#define SKIP_WITHOUT_SLURM()                                                        \
  SKIP_WITHOUT_VIRTUAL_HOSTS();                                                     \
  if (const std::string absent = lockstep::absent_slurm_program(); !absent.empty()) \
  GTEST_SKIP() << "no Slurm here: " << absent << " is absent"

namespace lockstep {

class SlurmCluster {
 public:
  // The nodes begin with `folder`, whose path they share; it gets a sub-folder `slurm`.
  SlurmCluster(const fs::path& folder, std::vector<std::string> nodes)
      : folder_(folder / "slurm"), nodes_(std::move(nodes)) {
    write_files();
    hosts_ = std::make_unique<VirtualHosts>(unshared_lab(nodes_, folder));
    start_daemons();
  }

  VirtualHosts& hosts() { return *hosts_; }

  // Runs a shell command in the control host, which is where a person submits jobs.
  std::pair<int, std::string> run(const std::string& shell,
                                  std::chrono::milliseconds limit = std::chrono::seconds(60)) {
    return hosts_->run("control", in_slurm(shell), limit);
  }
  std::unique_ptr<HostProgram> start(const std::string& shell) {
    return hosts_->start("control", {"/bin/sh", "-c", in_slurm(shell)});
  }
  // A file of a node, below its /srv, /tmp or home.
  fs::path file(const std::string& node, const fs::path& path) const {
    return hosts_->lab().path_on_this_machine(node, path);
  }
  // Waits until `done` returns true for the text that a command prints; returns the last text, with
  // the controller's log where it was waited for in vain.
  template <class Predicate>
  std::string wait_until(const std::string& shell, const Predicate& done, double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (;;) {
      const std::string text = run(shell).second;
      if (done(text)) return text;
      if (std::chrono::steady_clock::now() > end) return text + "\nin vain\n" + log();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  std::string log() const { return read_file(folder_ / "log/slurmctld.log"); }

 private:
  static bool contains(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
  }
  std::string in_slurm(const std::string& shell) const {
    return fmt::format("export SLURM_CONF={}/slurm.conf OMP_NUM_THREADS=1 PATH={}:$PATH; {}",
                       folder_.string(), fs::path(LOCKSTEP_PROGRAM).parent_path().string(), shell);
  }

  // cred_expire bounds the pause before a job that was requeued starts again (120 s unless set).
  void write_files() const {
    fs::remove_all(folder_);  // of a cluster before
    for (const char* name : {"state", "spool", "log"}) fs::create_directories(folder_ / name);
    write_file(folder_ / "munge.key", std::string(1024, 'k'));
    fs::permissions(folder_ / "munge.key", fs::perms{0600});
    write_file(
        folder_ / "slurm.conf",
        fmt::format("ClusterName=lab\nSlurmctldHost=control\nSlurmUser=root\n"
                    "AuthType=auth/munge\nAuthInfo=socket={0}/munge.socket,cred_expire=5\n"
                    "StateSaveLocation={0}/state\nSlurmdSpoolDir={0}/spool/%n\n"
                    "SlurmctldPidFile={0}/slurmctld.pid\nSlurmdPidFile={0}/slurmd.pid\n"
                    "SlurmctldLogFile={0}/log/slurmctld.log\nSlurmdLogFile={0}/log/slurmd.log\n"
                    "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n"
                    "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n"
                    "SlurmdParameters=config_overrides\nReturnToService=2\nSlurmdTimeout=6\n"
                    "KillWait=10\nJobRequeue=1\nSchedulerParameters=sched_interval=1,"
                    "bf_interval=1\n"
                    "NodeName={1} CPUs=2 State=UNKNOWN\n"
                    "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n",
                    folder_.string(), join(nodes_, ",")));
  }

  void start_daemons() {
    introduce(hosts_->lab(), nodes_);
    for (const std::string& node : nodes_) {
      start_daemon(node, munged());
      start_daemon(node, {"/usr/sbin/slurmd", "-D", "-f", folder_ / "slurm.conf", "-N", node});
    }
    start_daemon("control", munged());
    start_daemon("control", {"/usr/sbin/slurmctld", "-D", "-i", "-f", folder_ / "slurm.conf"});
    const std::string states = wait_until(
        "sinfo -h -N -o %T",
        [&](const std::string& text) {
          return split(std::string(trim(text)), '\n') ==
                 std::vector<std::string>(nodes_.size(), "idle");
        },
        60);
    if (contains(states, "in vain")) throw MachineError("Slurm's nodes are not ready: {}", states);
  }
  std::vector<std::string> munged() const {
    const std::string folder = folder_.string();
    return {"/usr/sbin/munged",
            "--foreground",
            "--force",
            "--key-file=" + folder + "/munge.key",
            "--socket=" + folder + "/munge.socket",
            "--pid-file=" + folder + "/munge.pid",
            "--seed-file=" + folder + "/munge.seed"};
  }
  void start_daemon(const std::string& host, std::vector<std::string> words) {
    daemons_.push_back(hosts_->start(host, std::move(words)));
  }

  fs::path folder_;
  std::vector<std::string> nodes_;
  std::unique_ptr<VirtualHosts> hosts_;
  std::vector<std::unique_ptr<HostProgram>> daemons_;  // before the hosts end
};

}  // namespace lockstep
