// Manages the folder of a running lab, through which other programs find its hosts and ask for
// changes.
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
// Throws ConfigError when no lab runs there, the host is unknown or powered off, or this process is
// inside another host.
HostNamespaces find_host(const std::filesystem::path& folder, const std::string& host);

// Opens the lab's listening socket in its folder. Throws ConfigError where the path is too long for
// a socket.
Descriptor listen_in(const std::filesystem::path& folder);
// Serves one request; `answer` returns an error's text, or an empty text.
void answer_request(int listening, const std::function<std::string(const std::string&)>& answer);

// Sends an event, as TOML, to the lab. Throws ConfigError with the lab's error.
void send_event(const std::filesystem::path& folder, const std::string& toml);

// Connects to a port in the control host's network, and passes the connection to the reader of
// `output`, a socket (ssh's ProxyUseFdpass). Throws MachineError.

void pass_connection(const std::filesystem::path& folder, const std::string& address, int port,
                     int output);

// Starts a process that removes a folder and control groups when this process is gone, even by
// SIGKILL. Returns null when there is nothing to remove.
std::unique_ptr<CleanupProcess> start_cleanup(const std::filesystem::path& folder,
                                              const std::vector<std::filesystem::path>& groups);

}  // namespace lockstep
