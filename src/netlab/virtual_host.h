// A virtual host: its own network, process, mount, host name and IPC namespaces, held by the
// process that is number 1 in them. Killing that process ends everything in the host at once, like
// a power loss; it dies with the thread that made it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "netlab/host_root.h"

namespace lockstep {

struct VirtualHostOptions {
  std::string name;
  std::filesystem::path etc_hosts;  // seen there as /etc/hosts
  std::filesystem::path etc_ssh;    // seen there as /etc/ssh; empty: the machine's
  bool sshd = false;                // runs sshd, on every address
  std::filesystem::path sshd_log;
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>>
      private_folders;              // on this machine, in the host
  double disk_mb = 0;               // size of private folders, in memory; 0: on our disk
  std::vector<std::string> sysctl;  // name=value
  std::filesystem::path cpu_group;  // of its processes; empty: ours
  std::optional<HostRoot> root;     // its own file system; none: this machine's
};

// A program to run in a host.
struct HostCommand {
  std::vector<std::string> words;
  std::vector<std::string> environment;  // NAME=value, added to our environment
  std::filesystem::path folder;          // empty: our current folder, or / of the host's own files
  int input = 0, output = 1, error = 2;  // descriptors
  bool new_group = false;                // puts it into a process group of its own
};

// Identifies a running host's namespaces.
struct HostNamespaces {
  pid_t init = -1;
  std::filesystem::path cpu_group;
  bool own_files = false;
};

// A program that runs in a host, and its parent outside, which reaps it: a host can only end when
// its processes are reaped, even if whoever started them does not wait for them.
struct HostProcess {
  pid_t parent = -1;   // our child: exits as the program does, with 128 + n after signal n
  pid_t program = -1;  // to send signals to
};

// Starts the program in the host; it is killed when the calling thread ends. Throws ConfigError (no
// such program) and MachineError.
HostProcess start_in_host(const HostNamespaces& host, const HostCommand& command);

class VirtualHost {
 public:
  // Makes the namespaces; nothing runs in them yet. REQUIRES that the calling thread outlives it.
  // Throws MachineError when not root, or on a kernel without namespaces.
  explicit VirtualHost(VirtualHostOptions options);
  ~VirtualHost();
  VirtualHost(const VirtualHost&) = delete;
  VirtualHost& operator=(const VirtualHost&) = delete;

  int network_namespace() const { return network_.get(); }
  // Call this when its interfaces are up: sets up mounts, sysctl and sshd. Throws MachineError.
  void boot();
  HostNamespaces namespaces() const {
    return {init_, options_.cpu_group, options_.root.has_value()};
  }

 private:
  void apply_sysctl() const;
  void wait_for_sshd() const;
  VirtualHostOptions options_;
  pid_t init_ = -1;
  Descriptor network_, go_, report_;
};

// Limits the processor time of a host by a control group (cgroup v1 or v2).
class CpuGroup {
 public:
  CpuGroup(const std::string& name, double cores);  // throws MachineError
  ~CpuGroup();                                      // REQUIRES that its processes have ended
  CpuGroup(const CpuGroup&) = delete;
  CpuGroup& operator=(const CpuGroup&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep
