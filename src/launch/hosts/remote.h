// Commands on the hosts of a job through the system's ssh, whose configuration, agent, keys and
// known hosts count. Nothing ever asks: a host that would is an error with advice.
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
  std::string user, key;           // empty: the configuration's
  std::vector<std::string> extra;  // words for -o; they win over what we set
  double connect_seconds = 10;
  std::string program;  // lockstep on the hosts; empty: found (lockstep_text)
};

// 'it'\''s': one word for any shell.
std::string shell_quote(std::string_view word);

// What to exec: ssh with BatchMode, a limit for connecting, a connection that is given up 6 s after
// the host went silent, nothing forwarded, no terminal; the host runs `shell_text` in /bin/sh
// whatever the user's login shell is. Standard input goes to it: give /dev/null where none is
// wanted.
std::vector<std::string> ssh_command(const Host& host, const RemoteOptions& options,
                                     const std::string& shell_text);
// The same for a person at a terminal: questions allowed; a login shell when `shell_text` is empty.
std::vector<std::string> ssh_shell_command(const Host& host, const RemoteOptions& options,
                                           const std::string& shell_text);

// True when no ssh is needed: its address, or what its name resolves to, is an address of this
// machine's interfaces, and ssh was not asked for.
bool is_this_machine(const Host& host);

// What to exec for `shell_text` on a host: /bin/sh here, ssh elsewhere.
std::vector<std::string> host_command(const Host& host, const RemoteOptions& options,
                                      const std::string& shell_text);

// Shell text that becomes lockstep with these arguments on a host: options.program, else what
// `cluster setup` installed (~/.lockstep/current/lockstep), else the path of this very program (a
// shared file system), else the one in PATH. Exits with 127 when there is none.
std::string lockstep_text(const RemoteOptions& options, const std::vector<std::string>& words);

// What a failed command means, from its wait status and ssh's own words: does not resolve, nothing
// listens, no answer, refused the key, unknown or changed host key, no lockstep there, full disk,
// ended by a signal, ... each with advice; the words themselves are the cause.
MachineError remote_error(const Host& host, int wait_status, const std::string& error_text);

struct RemoteResult {
  const Host* host = nullptr;
  int status = 0;             // as waitpid gives it; 0: all went well
  std::string output, error;  // what it wrote; with a visitor only the end of each
  double seconds = 0;
  bool timed_out = false;  // it was ended by us after the limit; `error` ends by saying so
};

// One command of a batch.
struct RemoteJob {
  const Host* host = nullptr;
  std::string shell_text;
  std::vector<std::string> feeder;  // a local command whose output it reads; empty: /dev/null
  bool ends_with_us = false;        // killed on its host, with all it started, when the connection
                                    // ends before it; it reads nothing then. Not with a feeder.
};

struct RemoteRun {
  std::chrono::seconds limit{0};  // for each command from its start; 0: none
  int at_once = 64;               // commands under way at a time
  // Called with pieces as they come; then results hold the last 64 kB of each stream only.
  std::function<void(std::size_t job, Stream stream, std::string_view bytes)> on_output;
  // Called when a command has ended and its streams are read.
  std::function<void(std::size_t job, const RemoteResult& result)> on_end;
};

// Runs all jobs, each ssh (or shell) in a process group of its own that ends with this process, and
// waits for all. SIGINT, SIGTERM and SIGHUP meanwhile end all of them, then throw an Error with
// exit code 128 + n. Throws MachineError when a process cannot be started; failures of commands are
// in the results, by job. The job of a feeder that fails has failed, with the feeder's words.
std::vector<RemoteResult> run_jobs(const std::vector<RemoteJob>& jobs, const RemoteOptions& options,
                                   const RemoteRun& run);

// The same text on all hosts; results by host.
std::vector<RemoteResult> run_on_hosts(const HostList& hosts, const RemoteOptions& options,
                                       const std::string& shell_text, std::chrono::seconds limit);

}  // namespace lockstep
