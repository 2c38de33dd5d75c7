// The folder of a running lab: how other programs find its hosts and tell it what to change.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/cleanup_process.h"
#include "netlab/virtual_host.h"

namespace lockstep {

inline constexpr const char* kLabVariable = "LOCKSTEP_NETLAB";  // set for programs in a lab
inline constexpr const char* kLabState = "lab.json";
inline constexpr const char* kLabSocket = "control.sock";

struct LabStateHost {
  std::string name;
  HostNamespaces namespaces;
};

void write_lab_state(const std::filesystem::path& folder, const std::vector<LabStateHost>& hosts);
bool lab_runs_in(const std::filesystem::path& folder);
// Throws ConfigError: no lab runs there, no such host, or its power is off.
HostNamespaces find_host(const std::filesystem::path& folder, const std::string& host);

// The lab's end: a socket in its folder. Throws ConfigError where the path is too long for one.
Descriptor listen_in(const std::filesystem::path& folder);
// Takes one request; what `answer` returns is an error's text, or empty.
void answer_request(int listening, const std::function<std::string(const std::string&)>& answer);

// The other end: sends an event as TOML. Throws ConfigError with what the lab answered.
void send_event(const std::filesystem::path& folder, const std::string& toml);

// Connects to a port in the control host's network, and hands the connection to the reader of
// `output`, a socket (ssh's ProxyUseFdpass). Throws MachineError.
void pass_connection(const std::filesystem::path& folder, const std::string& address, int port,
                     int output);

// Removes a folder and groups when this process is gone, also by SIGKILL. Null: nothing to remove.
std::unique_ptr<CleanupProcess> start_cleanup(const std::filesystem::path& folder,
                                              const std::vector<std::filesystem::path>& groups);

}  // namespace lockstep
