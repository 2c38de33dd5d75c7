// Runs commands on the hosts of a job through the system's ssh, with its configuration, agent, keys
// and known hosts. Nothing ever prompts: a host that would prompt is an error with advice.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "launch/hosts/host_list.h"
#include "launch/processes/rank_output.h"

namespace lockstep {

struct RemoteOptions {
  std::string ssh = "ssh";         // the program
  std::string ssh_config;          // -F: instead of ~/.ssh/config
  int port = 0;                    // 0: the configuration's, else 22
  std::string user, key;           // empty: from the configuration
  std::vector<std::string> extra;  // words for -o; they override ours
  double connect_seconds = 10;
  // Lockstep on the hosts, "~/..." below each one's home; empty: searched for (lockstep_text).
  std::string program;
  // The key opens one script, which takes words without blanks and starts lockstep itself
  // (launch/hosts/host_key.h).
  bool door = false;
};

// Quotes one word for any shell: 'it'\''s'.
std::string shell_quote(std::string_view word);
// Returns a line of a shell script that sets a variable.
std::string shell_assignment(std::string_view name, std::string_view value);

// Returns the command line to exec: ssh with BatchMode, a connection timeout, disconnection 6 s
// after the host goes silent, no forwarding and no terminal. The host runs `shell_text` in /bin/sh,
// whatever the user's login shell is. It reads standard input: give it /dev/null where none is
// wanted.
std::vector<std::string> ssh_command(const Host& host, const RemoteOptions& options,
                                     const std::string& shell_text);
// Like ssh_command(), for a person at a terminal: ssh may prompt; an empty `shell_text` starts a
// login shell.
std::vector<std::string> ssh_shell_command(const Host& host, const RemoteOptions& options,
                                           const std::string& shell_text);

// Returns whether no ssh is needed: the host's address, or what its name resolves to, is an address
// of this machine's interfaces, and ssh was not asked for.
bool is_this_machine(const Host& host);

// Returns the command line that runs `shell_text` on a host: with /bin/sh here, with ssh elsewhere.
std::vector<std::string> host_command(const Host& host, const RemoteOptions& options,
                                      const std::string& shell_text);

// Returns shell text that sets $p to lockstep's path on a host. It tries
// options.program, else what `cluster setup` installed (~/.lockstep/current/lockstep), else the
// path of this program (a shared file system), else PATH, and exits with 127 when there is none.
std::string find_lockstep_text(const RemoteOptions& options);
// Returns shell text that becomes lockstep, found so, with these arguments.
std::string lockstep_text(const RemoteOptions& options, const std::vector<std::string>& words);

// Explains a failed command from its wait status and ssh's output: unresolved name, nothing
// listens, no answer, key refused, unknown or changed host key, no lockstep there, full disk,
// killed by a signal, ... The error has advice; its cause is the output.
MachineError remote_error(const Host& host, int wait_status, const std::string& error_text);

struct RemoteResult {
  const Host* host = nullptr;
  int status = 0;             // as from waitpid; 0: success
  std::string output, error;  // with a visitor, only the end of each
  double seconds = 0;
  bool timed_out = false;  // we ended it at the limit, as the end of `error` says
};

// One command of a batch.
struct RemoteJob {
  const Host* host = nullptr;
  std::string shell_text;
  std::vector<std::string> feeder;  // a local command whose output it reads; empty: /dev/null
  bool ends_with_us = false;        // reads nothing, and is killed on its host, with all it
                                    // started, when the connection ends early; not with a feeder
};

struct RemoteRun {
  std::chrono::seconds limit{0};  // for each command from its start; 0: none
  int at_once = 64;               // commands under way at a time
  // Gets output in pieces as they arrive; results then hold only the last 64 kB of each stream.
  std::function<void(std::size_t job, Stream stream, std::string_view bytes)> on_output;
  // Called when a command has ended and its streams have been read.
  std::function<void(std::size_t job, const RemoteResult& result)> on_end;
};

// Runs all jobs, each ssh (or shell) in a process group of its own that ends with this process, and
// waits for all. SIGINT, SIGTERM and SIGHUP end all of them, and then throw an Error with exit code
// 128 + n. Throws MachineError when a process cannot be started; results tell, by job, which
// commands failed. A failing feeder fails its job, with the feeder's output.
std::vector<RemoteResult> run_jobs(const std::vector<RemoteJob>& jobs, const RemoteOptions& options,
                                   const RemoteRun& run);

// Runs the same text on all hosts; results are by host.
std::vector<RemoteResult> run_on_hosts(const HostList& hosts, const RemoteOptions& options,
                                       const std::string& shell_text, std::chrono::seconds limit);

}  // namespace lockstep
