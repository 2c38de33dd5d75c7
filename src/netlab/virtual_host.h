// A virtual host: its own network, process, mount, host name and IPC namespaces, held by a process
// that is number 1 in it. Killing that one ends everything in the host at once, as taking the power
// away does; it dies with the thread that made it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace lockstep {

struct VirtualHostOptions {
  std::string name;
  std::filesystem::path etc_hosts;  // what it sees as /etc/hosts
  std::filesystem::path etc_ssh;    // ... as /etc/ssh; empty: the machine's
  bool sshd = false;                // runs one, on every address
  std::filesystem::path sshd_log;
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>>
      private_folders;              // ours, its
  double disk_mb = 0;               // private folders are in memory and so large; 0: ours
  std::vector<std::string> sysctl;  // name=value
  std::filesystem::path cpu_group;  // cgroup of its processes; empty: ours
};

// A program to run in a host.
struct HostCommand {
  std::vector<std::string> words;
  std::vector<std::string> environment;  // NAME=value, added to ours
  std::filesystem::path folder;          // current folder; empty: ours
  int input = 0, output = 1, error = 2;  // descriptors
  bool new_group = false;                // a process group of its own
};

// Where a running host's namespaces are.
struct HostNamespaces {
  pid_t init = -1;
  std::filesystem::path cpu_group;
};

// A program that runs in a host, and its parent outside, which waits for it: a host's processes
// must be buried for the host to end, whether or not whoever started them looks at them.
struct HostProcess {
  pid_t parent = -1;   // our child: exits as the program does, with 128 + n after signal n
  pid_t program = -1;  // to send signals to
};

// Starts the program in the host. It is killed when the calling thread ends.
// Throws ConfigError (no such program) and MachineError.
HostProcess start_in_host(const HostNamespaces& host, const HostCommand& command);

class VirtualHost {
 public:
  // The namespaces are there, nothing runs yet. REQUIRES: the calling thread outlives it.
  // Throws MachineError: not root, a kernel without namespaces.
  explicit VirtualHost(VirtualHostOptions options);
  ~VirtualHost();
  VirtualHost(const VirtualHost&) = delete;
  VirtualHost& operator=(const VirtualHost&) = delete;

  int network_namespace() const { return network_.get(); }
  // When its interfaces are up: mounts, sysctl, sshd. Throws MachineError.
  void boot();
  HostNamespaces namespaces() const { return {init_, options_.cpu_group}; }

 private:
  void apply_sysctl() const;
  void wait_for_sshd() const;
  VirtualHostOptions options_;
  pid_t init_ = -1;
  Descriptor network_, go_, report_;
};

// A limit on the processor time of a host (cgroup v1 or v2), where the system lets us set one.
class CpuGroup {
 public:
  CpuGroup(const std::string& name, double cores);  // throws MachineError
  ~CpuGroup();                                      // REQUIRES: its processes have ended
  CpuGroup(const CpuGroup&) = delete;
  CpuGroup& operator=(const CpuGroup&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace lockstep
