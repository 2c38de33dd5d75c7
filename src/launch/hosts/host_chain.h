// Sends one stream to many hosts, from host to host: the line of this machine, often the slowest,
// carries it once. The hosts reach each other with a key made for this (launch/hosts/host_key.h),
// which opens one script on them, for two days at most, and is removed at the end.
//
//   ~/.lockstep/links/ID/   on each host: the key's files, and take, which the door opens to
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launch/hosts/host_key.h"
#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"

namespace lockstep {

// How a host fared of a stream.
struct ChainEnd {
  const Host* host = nullptr;
  const Host* from = nullptr;  // who sent it there; null: this machine
  bool reached = false;        // false: nothing is known of it, `error` says why
  int status = 0;              // of the script, as waitpid gives it
  std::string output, error;
};

class HostChain {
 public:
  // Makes the key, learns who the hosts are and installs what they need. Hosts where that fails
  // (no ssh client, a home that cannot be written) take no part. Throws MachineError when no key
  // can be made here, and Error after a signal. `hosts` and `remote` must outlive it.
  HostChain(const std::vector<const Host*>& hosts, const RemoteOptions& remote);
  // Removes all of it from the hosts; what a lost host keeps expires.
  ~HostChain();
  HostChain(const HostChain&) = delete;
  HostChain& operator=(const HostChain&) = delete;

  // Runs the shell text on the hosts that take part, in their home folders; the input of each is
  // what `feeder`, a command of this machine, writes. A host that fails does not keep the stream
  // from those after it; one that cannot be reached does. Returns the end of each of them.
  std::vector<ChainEnd> send(const std::string& text, const std::vector<std::string>& feeder);

 private:
  void put_scripts(const std::string& text);
  std::string folder() const;

  const RemoteOptions& remote_;
  std::string id_;
  std::vector<HostPeer> peers_;
};

namespace detail {
// Reads what the first host's script printed (launch/hosts/chain_scripts.h). `hosts` are by the
// names that they have in it, in the order of the chain.
std::vector<ChainEnd> read_chain_report(
    const std::vector<std::pair<std::string, const Host*>>& hosts, const std::string& report);
}  // namespace detail

}  // namespace lockstep
