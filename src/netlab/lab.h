// Runs a lab: virtual hosts on this machine, the network between them, and a schedule of what
// happens to it (docs/netlab.md). Nothing of it is left when the process that made it ends, however
// it ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "netlab/lab_config.h"
#include "netlab/lab_folder.h"
#include "netlab/switch.h"
#include "netlab/virtual_host.h"

namespace lockstep {

class Lab {
 public:
  // When this returns, all hosts are up and answer ssh. An empty `folder` means a temporary one;
  // `program` is the lockstep that ssh_config calls. REQUIRES that the calling thread outlives the
  // lab. Throws ConfigError and MachineError (no root, no /dev/net/tun, no sshd, no namespaces).
  Lab(LabConfig config, std::filesystem::path folder, std::filesystem::path program);
  ~Lab();
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;

  const LabConfig& config() const { return config_; }
  const std::filesystem::path& folder() const { return folder_; }
  std::string address(const std::string& host) const;      // in the network between the hosts
  std::string ssh_address(const std::string& host) const;  // where ssh reaches it

  void start_schedule();              // starts the clock of the events
  void apply(const LabEvent& event);  // at once, ignoring `at`; `lasts` counts from now
  HostProcess start(const std::string& host, const HostCommand& command);  // see start_in_host
  int network_namespace(const std::string& host) const;                    // see InNetworkNamespace
  PortCounts counts(const std::string& host);  // in the network between the hosts
  // Where a host's file lies on this machine: below its home, /tmp or /srv (not its system
  // folders).
  std::filesystem::path path_on_this_machine(const std::string& host,
                                             const std::filesystem::path& path) const;

 private:
  static constexpr int kData = 0, kControl = 1;  // networks; one is both where none is separate
  using Clock = std::chrono::steady_clock;
  struct Machine {
    std::unique_ptr<CpuGroup> cpu;
    std::unique_ptr<VirtualHost> host;  // null while powered off
    Descriptor decoy;
  };
  struct Planned {
    Clock::time_point due;
    std::function<void()> work;
  };

  int index(const std::string& host) const;  // throws ConfigError
  double rate_of(int host) const;
  std::string address_in(int network, int host) const;
  HostRootOptions root_options(int host) const;
  void prepare_folder();
  void set_up_network();
  void change_paths(const LabChange& change, const std::string& action, double lasts);
  void change_one(Switch& net, int from, int to, const LabChange& change, const std::string& action,
                  double lasts);
  void set_line(int host, int network, double rate_mbit);
  void power_on(int host);
  void power_off(int host);
  void plug_in(int host, int network);
  void write_state() const;
  void plan(double seconds, std::function<void()> work);
  void serve();  // the thread: schedule and control socket
  void answer_one();
  std::string handle(const std::string& request);

  LabConfig config_;
  std::filesystem::path folder_, program_;
  bool temporary_ = false;
  std::unique_ptr<CleanupProcess> cleanup_;
  std::vector<std::unique_ptr<Switch>> networks_;  // data, then control where that is separate
  std::vector<Machine> machines_;                  // the control host is last
  std::recursive_mutex mutex_;                     // guards machines_ and planned_
  std::vector<Planned> planned_;
  Descriptor control_, wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace lockstep
