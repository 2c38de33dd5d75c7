#include "launch/hosts/host_address.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "dist/rank/network.h"

namespace lockstep {

std::string own_ssh_address() {
  // sshd sets it to "client's address, its port, our address, our port".
  const char* connection = std::getenv("SSH_CONNECTION");
  if (connection == nullptr) return "";
  const auto words = split_words(connection);
  return words.size() == 4 ? std::string(words[2]) : "";
}

std::string address_for_others(const Host& host, const HostAddresses& known) {
  if (!host.address.empty()) return host.address;
  const std::string name = host.ssh_name.substr(host.ssh_name.find('@') + 1);
  const std::vector<std::string> found = addresses_elsewhere(name);
  for (const std::string& address : found) {
    const auto& its_own = known.its_own;
    if (std::find(its_own.begin(), its_own.end(), address) != its_own.end()) return address;
  }
  const std::string& by_ssh = known.by_ssh;
  if (!by_ssh.empty() && !by_ssh.starts_with("127.") && by_ssh != "::1") return by_ssh;
  return found.empty() ? "" : found.front();
}

}  // namespace lockstep
