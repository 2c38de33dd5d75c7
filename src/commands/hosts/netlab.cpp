#include "commands/hosts/netlab.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>

#include "base/catalogue.h"
#include "config/fields.h"
#include "netlab/lab.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

// The words before and after "--".
struct Words {
  Arguments before, after;
};

Words at_dashes(const Arguments& arguments) {
  auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  Words words{{arguments.begin(), dashes}, {}};
  if (dashes != arguments.end()) words.after.assign(dashes + 1, arguments.end());
  return words;
}

// Keeps signals pending to be fetched instead of ending us, so that the lab is taken down in order.
class WaitingSignals {
 public:
  WaitingSignals() {
    sigemptyset(&set_);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&set_, signal);
    ::pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  }
  siginfo_t next() const {
    siginfo_t info{};
    while (::sigwaitinfo(&set_, &info) < 0 && errno == EINTR) {
    }
    return info;
  }

 private:
  sigset_t set_;
};

// Waits for the command and passes signals to it, except Ctrl-C, which reaches it directly.
int wait_for(const HostProcess& process, const WaitingSignals& signals) {
  for (;;) {
    int status = 0;
    if (::waitpid(process.parent, &status, WNOHANG) == process.parent) {
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    siginfo_t info = signals.next();
    bool from_terminal = info.si_signo == SIGINT && info.si_code == SI_KERNEL;
    if (info.si_signo != SIGCHLD && !from_terminal) ::kill(process.program, info.si_signo);
  }
}

void print_counts(Lab& lab) {
  fmt::print(stderr, "{:<12} {:>10} {:>10} {:>8} {:>8} {:>8}\n", "host", "sent", "received", "lost",
             "cut", "overrun");
  for (const std::string& name : lab.config().hosts.names) {
    PortCounts c = lab.counts(name);
    fmt::print(stderr, "{:<12} {:>10} {:>10} {:>8} {:>8} {:>8}\n", name,
               short_bytes(static_cast<double>(c.bytes_in)),
               short_bytes(static_cast<double>(c.bytes_out)), c.lost, c.cut, c.overrun);
  }
}

int run(const Arguments& arguments) {
  Words words = at_dashes(arguments);
  std::string file, folder;
  bool counts = false;
  CommandLine app(
      "Runs a command beside the virtual hosts of a lab, then takes the lab down:\n"
      "lockstep netlab run LAB.toml [options] -- COMMAND",
      "lockstep netlab run");
  app.add_option("lab", file, "the lab's file (docs/netlab.md)")->required();
  app.add_option("--dir", folder, "the lab's folder (a temporary one)");
  app.add_flag("--counts", counts, "afterwards print what went through the network");
  if (!app.parse(words.before)) return kExitOk;
  if (words.after.empty()) {
    throw ConfigError("nothing to run: lockstep netlab run {} -- COMMAND", file);
  }
  LabConfig config = read_lab_config(file);
  WaitingSignals signals;
  Lab lab(std::move(config), folder, this_program());
  HostCommand command;
  command.words = words.after;
  HostProcess process = lab.start(kControlHost, command);
  lab.start_schedule();
  int code = wait_for(process, signals);
  if (counts) print_counts(lab);
  return code;
}

int up(const Arguments& arguments) {
  std::string file, folder;
  CommandLine app(
      "Keeps a lab up until a signal (Ctrl-C) comes: lockstep netlab up LAB.toml [options]",
      "lockstep netlab up");
  app.add_option("lab", file, "the lab's file (docs/netlab.md)")->required();
  app.add_option("--dir", folder, "the lab's folder (a temporary one)");
  if (!app.parse(arguments)) return kExitOk;
  LabConfig config = read_lab_config(file);
  WaitingSignals signals;
  Lab lab(std::move(config), folder, this_program());
  for (const std::string& name : lab.config().hosts.names) {
    fmt::print("{:<12} {:<15} ssh {}\n", name, lab.address(name), lab.ssh_address(name));
  }
  std::string where = lab.folder().string();
  fmt::print("\nexport {}={}\n", kLabVariable, where);
  if (lab.config().hosts.sshd) {
    fmt::print("ssh -F {}/ssh_config {}\n", where, lab.config().hosts.names.front());
  }
  fmt::print("lockstep netlab exec --dir {} {} -- COMMAND\nup; Ctrl-C takes it down\n", where,
             kControlHost);
  std::fflush(stdout);
  lab.start_schedule();
  for (;;) {
    int signal = signals.next().si_signo;
    if (signal != SIGCHLD) return 128 + signal;
  }
}

void add_folder(CommandLine& app, std::string& folder) {
  const char* set = std::getenv(kLabVariable);
  folder = set == nullptr ? "" : set;
  app.add_option("--dir", folder, fmt::format("the lab's folder (${})", kLabVariable));
}

// "delay_ms=20" as it stands; "b,c" as a TOML list of strings.
std::string toml_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return "[" + text + "]";
}

int set(const Arguments& arguments) {
  std::string folder, action, direction = "both", network;
  std::vector<std::string> hosts, to;
  double lasts = 0;
  CommandLine app("Changes a running lab: lockstep netlab set ACTION HOST... [options]",
                  "lockstep netlab set");
  add_folder(app, folder);
  app.add_option("action", action,
                 "cut, heal, power-off, power-on; or KEY=VALUE[,KEY=VALUE...] of "
                 "delay_ms, jitter_ms, loss, rate_mbit")
      ->required();
  app.add_option("hosts", hosts, "paths from and to these hosts")->required();
  app.add_option("--to", to, "only those between the hosts and these");
  app.add_option("--direction", direction, "out: what they send; in: what they receive (both)");
  app.add_option("--network", network, "data, control or all (data)");
  app.add_option("--for", lasts, "seconds until it is undone");
  if (!app.parse(arguments)) return kExitOk;
  bool sets = action.find('=') != std::string::npos;
  std::string toml = fmt::format("action = '{}'\nhosts = {}\ndirection = '{}'\n",
                                 sets ? "set" : action, toml_list(hosts), direction);
  if (!to.empty()) toml += "to = " + toml_list(to) + "\n";
  if (!network.empty()) toml += "network = '" + network + "'\n";
  if (app.has("--for")) toml += fmt::format("for = {}\n", lasts);
  for (const std::string& change : split(sets ? action : "", ',')) toml += change + "\n";
  send_event(folder, toml);
  return kExitOk;
}

int exec(const Arguments& arguments) {
  Words words = at_dashes(arguments);
  std::string folder, host;
  CommandLine app(
      "Runs a command in a host of a running lab:\n"
      "lockstep netlab exec HOST [--dir DIR] -- COMMAND",
      "lockstep netlab exec");
  add_folder(app, folder);
  app.add_option("host", host, "one of the lab's hosts, or control")->required();
  if (!app.parse(words.before)) return kExitOk;
  HostCommand command;
  command.words = words.after;
  command.environment = {fmt::format("{}={}", kLabVariable, folder)};
  WaitingSignals signals;
  return wait_for(start_in_host(find_host(folder, host), command), signals);
}

int connect(const Arguments& arguments) {
  std::string folder, address;
  int port = 22;
  CommandLine app("For ssh's ProxyCommand with ProxyUseFdpass: connects and hands the socket over",
                  "lockstep netlab connect");
  add_folder(app, folder);
  app.add_option("address", address, "of the host in the lab")->required();
  app.add_option("port", port, "22");
  if (!app.parse(arguments)) return kExitOk;
  pass_connection(folder, address, port, STDOUT_FILENO);
  return kExitOk;
}

int explain_lab(const Arguments& arguments) {
  CommandLine app("The keys of a lab's file", "lockstep netlab keys");
  if (!app.parse(arguments)) return kExitOk;
  HelpWriter help;
  LabConfig lab;
  help.section("network", lab.network, "between the hosts");
  help.section("hosts", lab.hosts, "all of them");
  LabHost host;
  help.section("host", host, "[[host]], once for each that differs");
  LabLink link;
  help.section("link", link, "[[link]], paths that differ");
  LabEvent event;
  help.section("event", event, "[[event]], what happens when");
  fmt::print("{}", help.text());
  return kExitOk;
}

const Catalogue<CommandPart>& netlab_parts() {
  static const Catalogue<CommandPart> catalogue = [] {
    Catalogue<CommandPart> c("part of netlab");
    c.add("run", run, "a command beside virtual hosts, which go when it ends");
    c.add("up", up, "virtual hosts until Ctrl-C");
    c.add("set", set, "change a running lab: cut, heal, power-off, power-on, delay_ms=20");
    c.add("exec", exec, "a command in a host of a running lab");
    c.add("keys", explain_lab, "the keys of a lab's file");
    c.add("connect", connect, "what ssh_config calls");
    return c;
  }();
  return catalogue;
}

}  // namespace

int netlab(const Arguments& arguments) { return run_part("netlab", netlab_parts(), arguments); }

}  // namespace lockstep
