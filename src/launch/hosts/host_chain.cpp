#include "launch/hosts/host_chain.h"

#include <chrono>
#include <ctime>

#include "base/file.h"
#include "base/program.h"
#include "base/text.h"
#include "dist/rank/token.h"
#include "launch/hosts/chain_scripts.h"

namespace lockstep {

namespace {

constexpr std::chrono::seconds kPatience{60};  // for what takes a moment

void make_key(const fs::path& path) {
  const ProgramEnd end = run_to_end(
      {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lockstep", "-f", path.string()});
  if (end.status != 0) throw MachineError("ssh-keygen made no key: {}", trim(end.said));
}

// The time after which sshd takes the key no more; hosts' clocks and zones differ.
std::string expiry() {
  const std::time_t then = std::time(nullptr) + 2 * 86400;
  std::tm parts{};
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y%m%d%H%M", ::gmtime_r(&then, &parts));
  return text;
}

}  // namespace

HostChain::HostChain(const std::vector<const Host*>& hosts, const RemoteOptions& remote)
    : remote_(remote), id_(to_hex(random_token()).substr(0, 16)) {
  install(ask(hosts));
}

HostChain::~HostChain() {
  std::vector<RemoteJob> jobs;
  for (const Peer& peer : peers_) {
    jobs.push_back(
        {.host = peer.host, .shell_text = shell_assignment("id", id_) + detail::kRemoveLink});
  }
  try {
    run_jobs(jobs, remote_, {.limit = kPatience});
  } catch (const Error&) {  // after a signal: the keys expire
  }
}

std::vector<HostChain::Peer> HostChain::ask(const std::vector<const Host*>& hosts) const {
  std::vector<RemoteJob> jobs;
  for (const Host* host : hosts) jobs.push_back({.host = host, .shell_text = detail::kWhoAmI});
  std::vector<Peer> peers;
  for (const RemoteResult& result : run_jobs(jobs, remote_, {.limit = kPatience})) {
    if (result.status != 0) continue;
    Peer peer{.host = result.host, .name = fmt::format("n{}", peers.size()), .user = ""};
    for (const std::string& line : split(result.output, '\n')) {
      const std::size_t blank = line.find(' ');
      if (blank == std::string::npos) continue;
      const std::string name = line.substr(0, blank), value = line.substr(blank + 1);
      if (name == "user") peer.user = value;
      if (name == "address") peer.address = value;
      if (name == "port") peer.port = value;
      if (name == "key") peer.host_keys += peer.name + " " + value + "\n";
    }
    if (!result.host->address.empty()) peer.address = result.host->address;
    const bool whole = !peer.user.empty() && !peer.address.empty() && !peer.port.empty();
    if (whole && !peer.host_keys.empty()) peers.push_back(std::move(peer));
  }
  return peers;
}

void HostChain::install(const std::vector<Peer>& peers) {
  if (peers.empty()) return;
  TemporaryFolder files;
  make_key(files.path() / "key");
  std::string config, known;
  for (const Peer& peer : peers) {
    config += fmt::format("Host {0}\n  HostKeyAlias {0}\n  HostName {1}\n  Port {2}\n  User {3}\n",
                          peer.name, peer.address, peer.port, peer.user);
    known += peer.host_keys;
  }
  config +=
      "Host *\n  IdentityFile key\n  IdentitiesOnly yes\n  UserKnownHostsFile known_hosts\n"
      "  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n  BatchMode yes\n"
      "  ConnectTimeout 5\n  ServerAliveInterval 5\n  ServerAliveCountMax 6\n  LogLevel ERROR\n";
  write_file(files.path() / "config", config);
  write_file(files.path() / "known_hosts", known);
  write_file(files.path() / "door", detail::kDoor);
  const std::string line =
      fmt::format("restrict,expiry-time=\"{}\",command=\"sh ~/.lockstep/links/{}/door\" {}-{}",
                  expiry(), id_, trim(read_file(files.path() / "key.pub")), id_);
  const std::vector<std::string> stream = {
      "tar", "-cf", "-", "-C", files.path().string(), "key", "config", "known_hosts", "door"};
  std::vector<RemoteJob> jobs;
  for (const Peer& peer : peers) {
    jobs.push_back({.host = peer.host,
                    .shell_text = shell_assignment("id", id_) + shell_assignment("line", line) +
                                  detail::kInstallLink,
                    .feeder = stream});
  }
  const std::vector<RemoteResult> results = run_jobs(jobs, remote_, {.limit = kPatience});
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (results[i].status == 0) peers_.push_back(peers[i]);
  }
}

// A host that takes no script takes no further part.
void HostChain::put_scripts(const std::string& text) {
  for (bool changed = true; changed;) {
    std::vector<RemoteJob> jobs;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const std::string next = i + 1 < peers_.size() ? peers_[i + 1].name : "";
      const std::string take =
          shell_assignment("me", peers_[i].name) + shell_assignment("next", next) + detail::kTake;
      jobs.push_back({.host = peers_[i].host,
                      .shell_text = fmt::format("cd {} && printf %s {} >work && printf %s {} >take",
                                                folder(), shell_quote(text), shell_quote(take))});
    }
    const std::vector<RemoteResult> results = run_jobs(jobs, remote_, {.limit = kPatience});
    std::vector<Peer> left;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      if (results[i].status == 0) left.push_back(peers_[i]);
    }
    changed = left.size() < peers_.size();
    peers_ = std::move(left);
  }
}

std::vector<ChainEnd> HostChain::send(const std::string& text,
                                      const std::vector<std::string>& feeder) {
  put_scripts(text);
  if (peers_.empty()) return {};
  const RemoteJob job{.host = peers_[0].host,
                      .shell_text = fmt::format("exec sh {}/take", folder()),
                      .feeder = feeder};
  const RemoteResult result = run_jobs({job}, remote_, {})[0];
  std::vector<std::pair<std::string, const Host*>> hosts;
  for (const Peer& peer : peers_) hosts.emplace_back(peer.name, peer.host);
  std::vector<ChainEnd> out = detail::read_chain_report(hosts, result.output);
  if (!out[0].reached) {
    out[0].error = remote_error(*job.host, result.status, result.error).describe();
  }
  return out;
}

std::string HostChain::folder() const { return "\"$HOME\"/.lockstep/links/" + id_; }

namespace detail {

std::vector<ChainEnd> read_chain_report(
    const std::vector<std::pair<std::string, const Host*>>& hosts, const std::string& report) {
  std::vector<ChainEnd> out;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    out.push_back({.host = hosts[i].second, .from = i > 0 ? hosts[i - 1].second : nullptr});
  }
  ChainEnd* of = nullptr;
  for (const std::string& line : split(report, '\n')) {
    if (line.size() < 2 || line[1] != ' ') continue;
    const std::string rest = line.substr(2);
    if (line[0] == '>' && of != nullptr) of->output += rest + "\n";
    if (line[0] == '!' && of != nullptr) of->error += rest + "\n";
    if (line[0] != '@' && line[0] != '?') continue;
    const std::vector<std::string> words = split(rest, ' ');
    of = nullptr;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (hosts[i].first == words[0]) of = &out[i];
    }
    if (of == nullptr || line[0] == '?' || words.size() < 2) continue;
    of->reached = true;
    // The shell's code, as waitpid gives it.
    of->status = std::atoi(words[1].c_str()) << 8;
  }
  return out;
}

}  // namespace detail

}  // namespace lockstep
