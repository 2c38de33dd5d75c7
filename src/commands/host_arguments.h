// The options by which commands learn their hosts and how to reach them.
#pragma once

#include "commands/command_line.h"
#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"

namespace lockstep {

struct HostArguments {
  HostOptions hosts;
  RemoteOptions remote;
};

// -p/--ssh-port, -i/--ssh-key, --ssh-user, -F/--ssh-config, -o/--ssh-option, --ssh-timeout,
// --program-on-hosts.
void add_ssh_options(CommandLine& app, RemoteOptions& remote);
// ConfigError for values that cannot be.
void check_ssh_options(const RemoteOptions& remote);

// The above and -H/--host, --hosts, --instances, --ranks-per-host.
void add_host_options(CommandLine& app, HostArguments& arguments);

// read_hosts after a check of what was given. Throws ConfigError; empty when no host was named.
HostList read_hosts(const HostArguments& arguments);

// As above; no host is an error too, which shows how to name them.
HostList require_hosts(const HostArguments& arguments);

}  // namespace lockstep
