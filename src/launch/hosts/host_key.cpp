#include "launch/hosts/host_key.h"

#include <chrono>
#include <ctime>

#include "base/date.h"
#include "base/file.h"
#include "base/program.h"
#include "base/text.h"
#include "launch/hosts/key_scripts.h"

namespace lockstep {

namespace {

constexpr std::chrono::seconds kKeyPatience{60};  // for what takes a moment

void make_key(const fs::path& path) {
  const ProgramEnd end = run_to_end(
      {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lockstep", "-f", path.string()});
  if (end.status != 0) throw MachineError("ssh-keygen made no key: {}", trim(end.said));
}

// The time after which sshd takes the key no more; hosts' clocks and zones differ.
std::string expiry_after(int days) {
  return utc_date(std::time(nullptr) + static_cast<std::time_t>(days) * 86400, "%Y%m%d%H%M");
}

void read_answer(const RemoteResult& result, HostPeer& peer) {
  if (result.status != 0) {
    peer.error = remote_error(*result.host, result.status, result.error).describe();
    return;
  }
  for (const std::string& line : split(result.output, '\n')) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string::npos) continue;
    const std::string name = line.substr(0, blank), value = line.substr(blank + 1);
    if (name == "user") peer.user = value;
    if (name == "address") peer.address = value;
    if (name == "port") peer.port = value;
    if (name == "key") peer.keys.push_back(value);
  }
  if (!result.host->address.empty()) peer.address = result.host->address;
  if (peer.user.empty() || peer.keys.empty()) {
    peer.error = result.host->name + ": does not say how others reach it (/etc/ssh/*_key.pub)";
  }
}

void write_ssh_files(const fs::path& folder, const std::vector<HostPeer>& peers,
                     const HostKeyOptions& options) {
  std::string config, known;
  for (const HostPeer& peer : peers) {
    if (!peer.error.empty()) continue;
    config += fmt::format("Host {0}\n  HostKeyAlias {0}\n  HostName {1}\n  Port {2}\n  User {3}\n",
                          peer.name, peer.address, peer.port, peer.user);
    for (const std::string& key : peer.keys) known += peer.name + " " + key + "\n";
  }
  config += fmt::format(
      "Host *\n  IdentityFile ~/{0}/key\n  IdentitiesOnly yes\n"
      "  UserKnownHostsFile ~/{0}/known_hosts\n"
      "  GlobalKnownHostsFile none\n  StrictHostKeyChecking yes\n  BatchMode yes\n"
      "  ConnectTimeout 5\n  ServerAliveInterval 5\n  ServerAliveCountMax 6\n  LogLevel ERROR\n",
      options.folder);
  write_file(folder / "config", config);
  write_file(folder / "known_hosts", known);
  write_file(folder / "door", "cd \"${0%/*}\" || exit 1\n" + options.door);
  for (const auto& [name, content] : options.files) write_file(folder / name, content);
}

}  // namespace

std::vector<HostPeer> ask_peers(const std::vector<const Host*>& hosts,
                                const RemoteOptions& remote) {
  std::vector<RemoteJob> jobs;
  for (const Host* host : hosts) jobs.push_back({.host = host, .shell_text = detail::kWhoAmI});
  std::vector<HostPeer> peers;
  for (const RemoteResult& result : run_jobs(jobs, remote, {.limit = kKeyPatience})) {
    HostPeer& peer = peers.emplace_back();
    peer.host = result.host;
    peer.name = result.host->name;
    read_answer(result, peer);
  }
  return peers;
}

void install_host_key(std::vector<HostPeer>& peers, const HostKeyOptions& options,
                      const RemoteOptions& remote) {
  for (HostPeer& peer : peers) {
    if (peer.error.empty() && peer.address.empty()) {
      peer.error = peer.host->name + ": no address is known that the others reach it by";
    }
  }
  TemporaryFolder files;
  make_key(files.path() / "key");
  write_ssh_files(files.path(), peers, options);
  const std::string line = fmt::format("restrict,expiry-time=\"{}\",command=\"sh ~/{}/door\" {}-{}",
                                       expiry_after(options.days), options.folder,
                                       trim(read_file(files.path() / "key.pub")), options.id);
  std::vector<std::string> stream = {"tar", "-cf", "-", "-C", files.path().string()};
  stream.insert(stream.end(), {"key", "config", "known_hosts", "door"});
  for (const auto& file : options.files) stream.push_back(file.first);
  std::vector<RemoteJob> jobs;
  std::vector<HostPeer*> takers;
  for (HostPeer& peer : peers) {
    if (!peer.error.empty()) continue;
    const std::string head = shell_assignment("id", options.id) +
                             shell_assignment("folder", options.folder) +
                             shell_assignment("line", line) + shell_assignment("me", peer.name);
    jobs.push_back({.host = peer.host,
                    .shell_text = head + detail::kLockKeys + detail::kInstallKey + options.after,
                    .feeder = stream});
    takers.push_back(&peer);
  }
  const std::vector<RemoteResult> results = run_jobs(jobs, remote, {.limit = kKeyPatience});
  for (std::size_t i = 0; i < takers.size(); ++i) {
    if (results[i].status == 0) continue;
    takers[i]->error =
        remote_error(*takers[i]->host, results[i].status, results[i].error).describe();
  }
}

std::string remove_host_key_text(const std::string& id, const std::string& folder) {
  return shell_assignment("id", id) + shell_assignment("folder", folder) + detail::kLockKeys +
         detail::kRemoveKey;
}

std::string renew_host_key_text(const std::string& id, int days) {
  return shell_assignment("id", id) + shell_assignment("expiry", expiry_after(days)) +
         detail::kLockKeys + detail::kRenewKey;
}

}  // namespace lockstep
