// Explains ssh's error messages to a person. OpenSSH reports every failure of its own with exit
// code 255.
#include <sys/wait.h>

#include "base/text.h"
#include "launch/hosts/remote.h"
#include "launch/processes/first_failure.h"

namespace lockstep {

namespace {

constexpr int kSshFailed = 255, kNotFound = 127, kNotExecutable = 126;

struct Meaning {
  const char* words;    // text to find in the error
  const char* message;  // {0}: the host's name, {1}: what ssh connects to
  const char* advice;
};

// The first entry whose words appear counts.
constexpr Meaning kMeanings[] = {
    {"Could not resolve hostname", "{0}: the name {1} does not resolve",
     "a name that `getent hosts {1}` or ~/.ssh/config knows, or the host's address"},
    {"HOST IDENTIFICATION HAS CHANGED", "{0}: its host key is not the one known before",
     "if the machine was made anew: ssh-keygen -R {1}, then ssh {1} once; else somebody stands in "
     "between"},
    {"Host key verification failed", "{0}: its host key is unknown",
     "ssh {1} once to accept it, or --ssh-option StrictHostKeyChecking=accept-new"},
    {"UNPROTECTED PRIVATE KEY FILE", "{0}: ssh does not use a key that others can read",
     "chmod 600 KEY"},
    {"Too many authentication failures", "{0}: the host refused our keys",
     "--ssh-key FILE --ssh-option IdentitiesOnly=yes: the agent offers too many"},
    {"Permission denied (", "{0}: the host refused our key",
     "ssh-copy-id {1}, or --ssh-key FILE, --ssh-user NAME, ssh-add; nothing asks for passwords"},
    {"Connection refused", "{0}: nothing listens on its ssh port",
     "another --ssh-port, or start sshd there"},
    {"timed out", "{0}: no answer",
     "is it running, and may ssh enter from here (security group, firewall)?"},
    {"No route to host", "{0}: no answer",
     "is it running, and may ssh enter from here (security group, firewall)?"},
    {"Network is unreachable", "{0}: no route to its network",
     "the public address from outside, the private one from inside its network"},
    {"not responding", "{0}: the connection was lost",
     "is the machine still running? `lockstep cluster check` tells"},
    {"Connection closed by", "{0}: the connection was closed before login",
     "sshd's MaxStartups there, or is it another service's port?"},
    {"Connection reset by", "{0}: the connection was closed before login",
     "sshd's MaxStartups there, or is it another service's port?"},
    {"kex_exchange_identification", "{0}: what answers there is no ssh server",
     "another --ssh-port"},
    {"Bad configuration option", "{0}: ssh does not accept its configuration",
     "the words after --ssh-option, or ~/.ssh/config"},
    {"Bad owner or permissions", "{0}: ssh does not accept its configuration",
     "chmod 600 ~/.ssh/config"},
};

// Returns the last meaningful line; ssh frames some messages with @ signs.
std::string last_words(const std::string& text) {
  std::string out;
  for (const std::string& line : split(text, '\n')) {
    std::string_view words = trim(line);
    if (!words.empty() && words.front() != '@') out = words;
  }
  return out;
}

const Meaning* meaning_of(const std::string& text) {
  for (const Meaning& meaning : kMeanings) {
    if (text.find(meaning.words) != std::string::npos) return &meaning;
  }
  return nullptr;
}

MachineError ssh_failed(const Host& host, const std::string& text) {
  if (const Meaning* meaning = meaning_of(text)) {
    MachineError error("{}", fmt::format(fmt::runtime(meaning->message), host.name, host.ssh_name));
    error.set_advice(fmt::format(fmt::runtime(meaning->advice), host.name, host.ssh_name));
    return error;
  }
  MachineError error("{}: the connection ended, or a signal ended the command there", host.name);
  error.set_advice(fmt::format("ssh {} shows what it says", host.ssh_name));
  return error;
}

// What our scripts say of a host, where they end with the code of a MachineError.
constexpr std::string_view kOurWords = "lockstep: ";
bool says_it_all(int code, const std::string& text) {
  return code == kExitMachine && last_words(text).starts_with(kOurWords);
}

// What the loader says, of the program or of the library that it loads
// (commands/shared/computing.h), up to the name of the library that is not there.
std::string missing_library(const std::string& text) {
  for (const std::string_view before :
       {"error while loading shared libraries: ", "cannot load liblockstep_computing.so: "}) {
    const std::size_t at = text.find(before);
    if (at == std::string::npos) continue;
    const std::string rest = text.substr(at + before.size());
    const std::size_t end = rest.find(": cannot open shared object file");
    if (end != std::string::npos) return rest.substr(0, end);
  }
  return "";
}

MachineError not_found(const Host& host, const std::string& text) {
  if (text.find("lockstep: no such program") == std::string::npos) {
    return MachineError("{}: no such program there (exit code 127)", host.name);
  }
  MachineError error("{}: no lockstep there", host.name);
  error.set_advice(
      "lockstep cluster setup or launch --push copies it, --program-on-hosts PATH names another");
  return error;
}

MachineError command_failed(const Host& host, int code, const std::string& text) {
  if (const std::string library = missing_library(text); !library.empty()) {
    MachineError error("{}: the program there lacks a library: {}", host.name, library);
    error.set_advice("lockstep cluster setup or launch --push brings the program anew");
    return error;
  }
  if (code == kNotFound) return not_found(host, text);
  if (code == kNotExecutable) {
    return MachineError("{}: the program there cannot be run (exit code 126)", host.name);
  }
  if (text.find("No space left on device") != std::string::npos ||
      text.find("Disk quota exceeded") != std::string::npos) {
    MachineError error("{}: its disk is full", host.name);
    error.set_advice("df -h there; lockstep cluster setup --prune removes old versions");
    return error;
  }
  if (code > 128 && code < 128 + 65) {
    return MachineError("{}: the command there was killed by {}", host.name,
                        signal_name(code - 128));
  }
  return MachineError("{}: the command there exited with code {}", host.name, code);
}

MachineError explain(const Host& host, int status, const std::string& text) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kSshFailed) return ssh_failed(host, text);
  if (WIFEXITED(status)) return command_failed(host, WEXITSTATUS(status), text);
  if (text.find("no end within") != std::string::npos) {
    return MachineError("{}: no answer", host.name);
  }
  return MachineError("{}: ssh was killed by {}", host.name, signal_name(WTERMSIG(status)));
}

}  // namespace

MachineError remote_error(const Host& host, int wait_status, const std::string& error_text) {
  MachineError error = explain(host, wait_status, error_text);
  std::string words = last_words(error_text);
  if (WIFEXITED(wait_status) && says_it_all(WEXITSTATUS(wait_status), error_text)) {
    return MachineError("{}: {}", host.name, words.substr(kOurWords.size()));
  }
  if (!words.empty()) error.set_cause(words);
  return error;
}

}  // namespace lockstep
