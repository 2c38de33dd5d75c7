// Hosts: of a file, of -H, and as three clouds list their instances.
#include "launch/hosts/host_list.h"

#include "fuzz.h"
#include "launch/hosts/instance_list.h"

FUZZ(bytes) {
  const std::string text(bytes);
  if (text.starts_with('[') || text.starts_with('{')) {
    lockstep::try_one([&] { return lockstep::instances_in(text, "instances.json"); });
    return;
  }
  const std::string path = lockstep::as_file(bytes).string();
  lockstep::try_one([&] { return lockstep::read_hosts({.hosts_file = path}); });
  if (text.find('\0') == std::string::npos) {
    lockstep::try_one([&] { return lockstep::read_hosts({.hosts = text}); });
  }
}
