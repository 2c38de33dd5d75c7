#include "launch/hosts/remote.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/text.h"
#include "dist/rank/network.h"

namespace lockstep {

namespace {

std::string own_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// A name is looked up once: where DNS is slow, each look-up takes seconds.
bool names_this_machine(const std::string& name) {
  static std::mutex mutex;
  static std::map<std::string, bool> known;
  const std::scoped_lock lock(mutex);
  const auto [found, is_new] = known.try_emplace(name, false);
  if (is_new) {
    const std::vector<std::string> addresses = addresses_of(name);
    found->second = std::any_of(addresses.begin(), addresses.end(), is_own_address);
  }
  return found->second;
}

void add_setting(std::vector<std::string>& words, const std::string& setting) {
  words.push_back("-o");
  words.push_back(setting);
}

// The user's settings come first: ssh takes the first value that it gets.
std::vector<std::string> ssh_words(const RemoteOptions& options) {
  std::vector<std::string> words = {options.ssh};
  if (!options.ssh_config.empty()) words.insert(words.end(), {"-F", options.ssh_config});
  for (const std::string& setting : options.extra) add_setting(words, setting);
  if (options.port > 0) words.insert(words.end(), {"-p", std::to_string(options.port)});
  if (!options.user.empty()) words.insert(words.end(), {"-l", options.user});
  if (!options.key.empty()) words.insert(words.end(), {"-i", options.key});
  add_setting(words, fmt::format("ConnectTimeout={}", std::ceil(options.connect_seconds)));
  return words;
}

}  // namespace

std::string shell_quote(std::string_view word) {
  std::string out = "'";
  for (char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string shell_assignment(std::string_view name, std::string_view value) {
  return fmt::format("{}={}\n", name, shell_quote(value));
}

std::vector<std::string> ssh_command(const Host& host, const RemoteOptions& options,
                                     const std::string& shell_text) {
  std::vector<std::string> words = ssh_words(options);
  // Uses a shared connection (ControlMaster) that the user started; starting one here would leave a
  // process that holds our pipes open.
  for (const char* setting :
       {"BatchMode=yes", "ServerAliveInterval=2", "ServerAliveCountMax=3", "ControlMaster=no",
        "ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no",
        "RequestTTY=no", "EscapeChar=none", "LogLevel=ERROR"}) {
    add_setting(words, setting);
  }
  words.insert(words.end(),
               {"--", host.ssh_name,
                options.door ? shell_text : "exec /bin/sh -c " + shell_quote(shell_text)});
  return words;
}

std::vector<std::string> ssh_shell_command(const Host& host, const RemoteOptions& options,
                                           const std::string& shell_text) {
  std::vector<std::string> words = ssh_words(options);
  words.insert(words.end(), {"--", host.ssh_name});
  if (!shell_text.empty()) words.push_back(shell_text);
  return words;
}

bool is_this_machine(const Host& host) {
  if (host.by_ssh) return false;
  if (!host.address.empty()) return is_own_address(host.address);
  if (host.name == "localhost" || host.name == own_name()) return true;
  return names_this_machine(host.ssh_name);
}

std::vector<std::string> host_command(const Host& host, const RemoteOptions& options,
                                      const std::string& shell_text) {
  if (is_this_machine(host)) return {"/bin/sh", "-c", shell_text};
  return ssh_command(host, options, shell_text);
}

std::string find_lockstep_text(const RemoteOptions& options) {
  constexpr const char* kNone = "{ echo 'lockstep: no such program on this host' >&2; exit 127; }";
  if (!options.program.empty()) {
    constexpr std::string_view kHome = "~/";
    const bool at_home = options.program.starts_with(kHome);
    const std::string program =
        at_home ? "\"$HOME\"/" + shell_quote(options.program.substr(kHome.size()))
                : shell_quote(options.program);
    return fmt::format("p={}; command -v \"$p\" >/dev/null || {}; ", program, kNone);
  }
  std::string own = std::filesystem::read_symlink("/proc/self/exe").string();
  return fmt::format(
      "p=$HOME/.lockstep/current/lockstep; [ -x \"$p\" ] || p={}; "
      "[ -x \"$p\" ] || p=$(command -v lockstep) || {}; ",
      shell_quote(own), kNone);
}

std::string lockstep_text(const RemoteOptions& options, const std::vector<std::string>& words) {
  if (options.door) return "lockstep " + join(words, " ");
  std::string text = find_lockstep_text(options) + "exec \"$p\"";
  for (const std::string& word : words) text += " " + shell_quote(word);
  return text;
}

}  // namespace lockstep
