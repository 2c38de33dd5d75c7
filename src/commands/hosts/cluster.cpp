#include "commands/hosts/cluster.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/catalogue.h"
#include "base/table.h"
#include "base/text.h"
#include "launch/processes/child_process.h"

namespace lockstep {

namespace {

// The words before "--", and those after it.
struct Split {
  Arguments options, command;
  bool dashes = false;
};

Split split_at_dashes(const Arguments& arguments) {
  auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  Split out{.options = {arguments.begin(), dashes}, .dashes = dashes != arguments.end()};
  if (out.dashes) out.command.assign(dashes + 1, arguments.end());
  return out;
}

int list_hosts(const Arguments& arguments) {
  HostArguments given;
  CommandLine app("Lists the hosts that the options name. Contacts none.", "lockstep cluster list");
  add_host_options(app, given);
  if (!app.parse(arguments)) return kExitOk;
  HostList list = require_hosts(given);
  std::vector<std::vector<std::string>> rows = {
      {"index", "name", "ssh", "address", "slots", "state"}};
  for (std::size_t i = 0; i < list.hosts.size(); ++i) {
    const Host& host = list.hosts[i];
    std::string state = is_this_machine(host) ? "this machine" : host.state;
    rows.push_back({std::to_string(i), host.name, host.ssh_name,
                    host.address.empty() ? "-" : host.address, slots_text(host.slots),
                    state.empty() ? "-" : state});
  }
  fmt::print("{}", format_table(rows, "r   r"));
  fmt::print("{} hosts, {} ranks\n", list.hosts.size(),
             list.has_auto() ? "auto" : std::to_string(list.ranks()));
  return kExitOk;
}

// Finds a host by name, else by the index that `cluster list` shows.
const Host& find_host(const HostList& list, const std::string& text) {
  std::vector<std::string> names;
  for (const Host& host : list.hosts) {
    if (host.name == text || host.ssh_name == text) return host;
    names.push_back(host.name);
  }
  std::size_t index = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (failed == std::errc() && end == text.data() + text.size() && index < list.hosts.size()) {
    return list.hosts[index];
  }
  throw ConfigError("no host \"{}\" in {}{}; expected a name or an index from 0 to {}", text,
                    list.source, did_you_mean(text, names), list.hosts.size() - 1);
}

// Takes one word as shell text, as ssh does, and several as a program and its arguments.
std::string shell_text(const Arguments& command) {
  if (command.size() == 1) return command[0];
  std::string out;
  for (const std::string& word : command) out += (out.empty() ? "" : " ") + shell_quote(word);
  return out;
}

int open_shell(const Arguments& arguments) {
  HostArguments given;
  std::string which;
  Split words = split_at_dashes(arguments);
  CommandLine app(
      "Opens a shell on one host, or runs a command there:\n"
      "lockstep cluster ssh NAME|INDEX [options] [-- COMMAND]",
      "lockstep cluster ssh");
  app.add_option("machine", which, "its name or index, as cluster list shows them")->required();
  add_host_options(app, given);
  if (!app.parse(words.options)) return kExitOk;
  HostList list = require_hosts(given);
  const Host& host = find_host(list, which);
  std::vector<std::string> command;
  if (!is_this_machine(host)) {
    command = ssh_shell_command(host, given.remote, shell_text(words.command));
  } else if (words.command.empty()) {
    const char* shell = std::getenv("SHELL");
    command = {shell ? shell : "/bin/sh", "-l"};
  } else {
    command = {"/bin/sh", "-c", shell_text(words.command)};
  }
  std::string program = find_program(command[0]);
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  throw MachineError("{}: cannot be started: {}", program, std::strerror(errno));
}

// Shows the lines of all hosts as they arrive, each prefixed with its host's name.
class PrefixedLines {
 public:
  explicit PrefixedLines(const HostList& list) : list_(list), splitters_(list.hosts.size()) {}

  void take(std::size_t host, Stream stream, std::string_view bytes) {
    splitters_[host][stream].take(bytes, [&](std::string_view line) { show(host, stream, line); });
  }
  void end(std::size_t host) {
    for (Stream stream : {kStandardOutput, kStandardError}) {
      splitters_[host][stream].end([&](std::string_view line) { show(host, stream, line); });
    }
  }

 private:
  void show(std::size_t host, Stream stream, std::string_view line) {
    write_all(stream == kStandardOutput ? 1 : 2,
              fmt::format("{}: {}\n", list_.hosts[host].name, line));
  }
  const HostList& list_;
  std::vector<std::array<LineSplitter, 2>> splitters_;
};

// Returns the exit code that a script sees for a host whose command failed.
int exit_code_of(const RemoteResult& result) {
  constexpr int kSshFailed = 255;
  bool exited = WIFEXITED(result.status) && WEXITSTATUS(result.status) != kSshFailed;
  return exited ? WEXITSTATUS(result.status) : static_cast<int>(kExitMachine);
}

int run_everywhere(const Arguments& arguments) {
  HostArguments given;
  RemoteRun run;
  int limit_seconds = 0;
  Split words = split_at_dashes(arguments);
  CommandLine app(
      "Runs a command on all hosts at once, each line of output behind its host's name:\n"
      "lockstep cluster run [options] -- COMMAND",
      "lockstep cluster run");
  add_host_options(app, given);
  app.add_option("--at-once", run.at_once, "hosts at a time (default 64)")->range(1, kMostHosts);
  app.add_option("--limit", limit_seconds, "seconds after which a host's command is ended")
      ->range(1, 1 << 30);
  if (!app.parse(words.options)) return kExitOk;
  if (words.command.empty()) {
    throw ConfigError("nothing to run: lockstep cluster run -H a,b -- COMMAND");
  }
  HostList list = require_hosts(given);
  std::vector<RemoteJob> jobs;
  for (const Host& host : list.hosts) {
    jobs.push_back({.host = &host, .shell_text = shell_text(words.command), .ends_with_us = true});
  }
  PrefixedLines lines(list);
  int first_code = 0;
  std::vector<std::string> failures;
  run.limit = std::chrono::seconds(limit_seconds);
  run.on_output = [&](std::size_t host, Stream stream, std::string_view bytes) {
    lines.take(host, stream, bytes);
  };
  run.on_end = [&](std::size_t host, const RemoteResult& result) {
    lines.end(host);
    if (result.status == 0) return;
    if (first_code == 0) first_code = exit_code_of(result);
    failures.push_back(remote_error(*result.host, result.status, result.error).describe());
  };
  run_jobs(jobs, given.remote, run);
  if (failures.empty()) return kExitOk;
  throw Error(first_code, fmt::format("{} of {} hosts failed\n{}", failures.size(), jobs.size(),
                                      join(failures, "\n")));
}

const Catalogue<CommandPart>& cluster_parts() {
  static const Catalogue<CommandPart> catalogue = [] {
    Catalogue<CommandPart> c("part of cluster");
    c.add("list", list_hosts, "the hosts that the options name");
    c.add("ssh", open_shell, "a shell on one host, by name or index");
    c.add("check", cluster_check, "can each be reached, and what is on it");
    c.add("setup", cluster_setup, "lockstep, files and a shared file system on each");
    c.add("run", run_everywhere, "a command on all hosts at once");
    c.add("rules", cluster_rules, "the firewall rules that a cluster needs, for three clouds");
    return c;
  }();
  return catalogue;
}

}  // namespace

int cluster(const Arguments& arguments) { return run_part("cluster", cluster_parts(), arguments); }

}  // namespace lockstep
