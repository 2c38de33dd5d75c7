#include "commands/shared/host_arguments.h"

#include <cstdlib>
#include <filesystem>

#include "launch/push/push_plan.h"

namespace lockstep {

namespace {

constexpr const char* kGroup = "Hosts";

}  // namespace

void add_ssh_options(CommandLine& app, RemoteOptions& remote) {
  app.add_option("-p,--ssh-port", remote.port, "port of the hosts' sshd")->group(kGroup);
  app.add_option("-i,--ssh-key", remote.key, "private key")->group(kGroup);
  app.add_option("--ssh-user", remote.user, "user on the hosts")->group(kGroup);
  app.add_option("-F,--ssh-config", remote.ssh_config, "instead of ~/.ssh/config")->group(kGroup);
  app.add_option("-o,--ssh-option", remote.extra, "option for ssh, as NAME=VALUE; may be repeated")
      ->group(kGroup)
      ->expected(1)
      ->take_all();
  app.add_option("--ssh-timeout", remote.connect_seconds, "seconds to connect (default 10)")
      ->group(kGroup);
  app.add_option("--program-on-hosts", remote.program, "path of lockstep on the hosts")
      ->group(kGroup);
}

void check_ssh_options(const RemoteOptions& remote) {
  if (remote.port < 0 || remote.port > 65535) {
    throw ConfigError("--ssh-port {}: expected a port from 1 to 65535", remote.port);
  }
  if (!(remote.connect_seconds > 0 && remote.connect_seconds <= 3600)) {
    throw ConfigError("--ssh-timeout {}: expected seconds above 0, at most 3600",
                      remote.connect_seconds);
  }
  for (const auto& [option, path] :
       {std::pair{"--ssh-key", remote.key}, std::pair{"--ssh-config", remote.ssh_config}}) {
    if (!path.empty() && !std::filesystem::exists(path)) {
      throw ConfigError("{} {}: no such file", option, path);
    }
  }
}

void add_host_options(CommandLine& app, HostArguments& arguments) {
  HostOptions& hosts = arguments.hosts;
  app.add_option("-H,--host", hosts.hosts, "hosts and ranks on each: a:2,user@b:2")->group(kGroup);
  app.add_option("--hosts", hosts.hosts_file, "a file of hosts: NAME slots=2 ssh=... address=...")
      ->group(kGroup);
  app.add_option("--instances", hosts.instances,
                 "a cloud's list of instances (JSON of AWS, Google, Azure)")
      ->group(kGroup);
  app.add_option("--ranks-per-host", hosts.ranks_per_host, "ranks on each host")->group(kGroup);
  add_ssh_options(app, arguments.remote);
}

HostList read_hosts(const HostArguments& arguments) {
  check_ssh_options(arguments.remote);
  return read_hosts(arguments.hosts);
}

HostList require_hosts(const HostArguments& arguments) {
  HostList list = read_hosts(arguments);
  if (!list.hosts.empty()) return list;
  ConfigError error("no hosts: nothing says which machines are meant");
  error.set_advice("-H a,b or --hosts FILE or --instances FILE");
  throw error;
}

std::string folder_on_hosts(const std::string& given) {
  if (given.empty()) {
    const std::string name = fs::current_path().filename().string();
    return "~/lockstep/" + (name.empty() ? "job" : name);
  }
  if (given == "~" || given.starts_with("~/")) return given;
  const fs::path folder = fs::absolute(given).lexically_normal();
  const char* home = std::getenv("HOME");
  const std::string within = home == nullptr ? "" : path_within(home, folder);
  if (within.empty()) return folder.string();
  return within == "." ? "~" : "~/" + within;
}

}  // namespace lockstep
