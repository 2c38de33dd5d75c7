// Adds the options that tell commands their hosts and how to reach them.
#pragma once

#include "commands/shared/command_line.h"
#include "launch/hosts/host_list.h"
#include "launch/hosts/remote.h"

namespace lockstep {

struct HostArguments {
  HostOptions hosts;
  RemoteOptions remote;
};

// Adds -p/--ssh-port, -i/--ssh-key, --ssh-user, -F/--ssh-config, -o/--ssh-option, --ssh-timeout and
// --program-on-hosts.
void add_ssh_options(CommandLine& app, RemoteOptions& remote);
// Throws ConfigError for impossible values.
void check_ssh_options(const RemoteOptions& remote);

// Adds these and -H/--host, --hosts, --instances, --ranks-per-host.
void add_host_options(CommandLine& app, HostArguments& arguments);

// Calls read_hosts() after checking the options. Throws ConfigError; returns an empty list when no
// host was named.
HostList read_hosts(const HostArguments& arguments);

// Like read_hosts(), but throws ConfigError, which shows how to name hosts, when there is none.
HostList require_hosts(const HostArguments& arguments);

// Returns the folder to work in on the hosts: `given` (--cwd) as the hosts understand it, a path
// below this user's home as "~/...", or ~/lockstep/NAME.
std::string folder_on_hosts(const std::string& given);

}  // namespace lockstep
