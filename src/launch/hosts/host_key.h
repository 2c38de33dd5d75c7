// A key with which hosts reach each other, made for one purpose and kept on these hosts only. It
// opens one script there, the door, and nothing else, and sshd refuses it after some days.
//
//   ~/FOLDER/               on each host: key, config and known_hosts of ssh, door
//   ~/.ssh/authorized_keys  restrict,expiry-time="...",command="sh ~/FOLDER/door" ... lockstep-ID
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"

namespace lockstep {

// A host as the others reach it.
struct HostPeer {
  const Host* host = nullptr;
  std::string name;  // in the others' ssh
  std::string user = {}, address = {}, port = {};
  std::vector<std::string> keys = {};  // of its sshd: "ssh-ed25519 AAAA..."
  std::string error = {};              // why it cannot take part; empty: it can
};

// Asks the hosts, all at once. A peer has the host's name and, as its address, the one given for
// the host, else the one that ssh connected to. `hosts` must outlive the result.
std::vector<HostPeer> ask_peers(const std::vector<const Host*>& hosts, const RemoteOptions& remote);

struct HostKeyOptions {
  std::string id;      // of letters, digits and hyphens
  std::string folder;  // below the home, as ".lockstep/links/ID"
  std::string door;    // script of sh that runs in FOLDER; SSH_ORIGINAL_COMMAND says what is wanted
  int days = 2;
  std::vector<std::pair<std::string, std::string>> files = {};  // more for FOLDER: name, content
  std::string after = {};  // script of sh that runs in FOLDER once all is there; $me: peer's name
};

// Makes the key in a temporary folder and installs it on the peers; those where that fails get an
// error. Folders of keys that were left behind go. Throws MachineError when no key can be made.
void install_host_key(std::vector<HostPeer>& peers, const HostKeyOptions& options,
                      const RemoteOptions& remote);

// Shell texts that a host runs to remove a key and its files, but not FOLDER, and to have it
// expire so many days from now.
std::string remove_host_key_text(const std::string& id, const std::string& folder);
std::string renew_host_key_text(const std::string& id, int days);

}  // namespace lockstep
