#include <fmt/ranges.h>

#include <filesystem>

#include "base/text.h"
#include "commands/hosts/cluster.h"
#include "launch/hosts/host_setup.h"

namespace lockstep {

namespace {

struct Wanted {
  std::string log_folder;
  std::vector<std::string> copies, shares, mounts;
  bool install = false, prune = false, no_program = false;
};

// The ends of the ssh connection, as a host sees them: "CLIENT PORT SERVER PORT".
struct Ends {
  std::string here = "YOUR.ADDRESS", port = "22";
};

Ends ends_of_ssh(const HostList& list, const RemoteOptions& remote) {
  Ends ends;
  for (const Host& host : list.hosts) {
    if (is_this_machine(host)) continue;
    HostList one{.hosts = {host}};
    RemoteResult result =
        run_on_hosts(one, remote, "echo \"$SSH_CONNECTION\"", std::chrono::seconds(30))[0];
    std::vector<std::string_view> words = split_words(result.output);
    if (result.status == 0 && words.size() == 4) {
      ends.here = words[0];
      ends.port = words[3];
    }
    return ends;
  }
  return ends;
}

std::string rules(const Ends& ends) {
  std::string one = ends.here + (ends.here.find(':') == std::string::npos ? "/32" : "/128");
  return fmt::format(
      R"(The machines need two openings: ssh (port {port}) from {here}, and all TCP between
themselves. Nothing else, and nothing from 0.0.0.0/0. As one of these:

AWS (GROUP: the instances' security group)
  aws ec2 authorize-security-group-ingress --group-id GROUP --protocol tcp --port {port} --cidr {here}
  aws ec2 authorize-security-group-ingress --group-id GROUP --protocol tcp --port 0-65535 --source-group GROUP
Google (the instances carry the tag lockstep)
  gcloud compute firewall-rules create lockstep-ssh --allow=tcp:{port} --source-ranges={here} --target-tags=lockstep
  gcloud compute firewall-rules create lockstep-inside --allow=tcp --source-tags=lockstep --target-tags=lockstep
Azure (GROUP, NSG: of the machines; SUBNET: theirs, as 10.0.0.0/24)
  az network nsg rule create -g GROUP --nsg-name NSG -n lockstep-ssh --priority 1000 --protocol Tcp --source-address-prefixes {here} --destination-port-ranges {port}
  az network nsg rule create -g GROUP --nsg-name NSG -n lockstep-inside --priority 1010 --protocol Tcp --source-address-prefixes SUBNET --destination-port-ranges 0-65535
)",
      fmt::arg("here", one), fmt::arg("port", ends.port));
}

void add_setup_options(CommandLine& app, Wanted& wanted) {
  app.add_option("--copy", wanted.copies,
                 "PATH[:/DESTINATION]: bring a file or folder to all hosts; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option(
         "--copy-share", wanted.shares,
         "PATH[:/DESTINATION]: bring prepared data in parts, each shard to one of the hosts, "
         "which send each other what they lack in training; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("--mount", wanted.mounts,
                 "SERVER:/EXPORT:/MOUNTPOINT[:TYPE[:OPTIONS]]: a line of fstab, and mount it")
      ->expected(1)
      ->take_all();
  app.add_option("--log-dir", wanted.log_folder, "append what each host said to NAME.log here");
  app.add_flag("--install", wanted.install,
               "system libraries from the hosts' Debian packages (apt-get) instead of copies");
  app.add_flag("--prune", wanted.prune, "remove older versions of lockstep from the hosts");
  app.add_flag("--no-program", wanted.no_program, "leave lockstep on the hosts as it is");
}

std::vector<std::string> packages_for(const std::vector<Mount>& mounts,
                                      const ProgramFiles& program) {
  std::vector<std::string> packages = program.packages;
  for (const Mount& mount : mounts) {
    if (mount.type.starts_with("nfs")) packages.push_back("nfs-common");
  }
  return packages;
}

}  // namespace

int cluster_setup(const Arguments& arguments) {
  HostArguments given;
  Wanted wanted;
  CommandLine app(
      "Makes all hosts ready at once: copies this lockstep and its libraries to ~/.lockstep, "
      "files,\n"
      "mounts a shared file system. Changes only what is not yet so.",
      "lockstep cluster setup");
  add_host_options(app, given);
  add_setup_options(app, wanted);
  if (!app.parse(arguments)) return kExitOk;
  HostList list = require_hosts(given);
  std::vector<Copy> copies;
  for (const std::string& text : wanted.copies) copies.push_back(parse_copy(text));
  std::vector<Copy> shares;
  for (const std::string& text : wanted.shares) shares.push_back(parse_share(text));
  std::vector<Mount> mounts;
  for (const std::string& text : wanted.mounts) mounts.push_back(parse_mount(text));

  HostSetup::Options options{.remote = given.remote, .log_folder = wanted.log_folder};
  options.on_note = [](const Host& host, std::string_view line) {
    fmt::print("{}: {}\n", host.name, line);
    std::fflush(stdout);
  };
  HostSetup setup(list, options);
  ProgramFiles program;
  if (!wanted.no_program) program = program_files(wanted.install);
  if (wanted.install) setup.install_packages(packages_for(mounts, program));
  for (const Mount& mount : mounts) setup.mount(mount);  // first, since copies may go there
  if (!wanted.no_program) setup.install_program(program);
  for (const Copy& copy : copies) setup.copy(copy);
  for (const Copy& share : shares) setup.copy_share(share);
  if (wanted.prune) setup.prune();
  setup.throw_failures();
  fmt::print("\n{}", rules(ends_of_ssh(list, given.remote)));
  return kExitOk;
}

int cluster_rules(const Arguments& arguments) {
  HostArguments given;
  CommandLine app(
      "Prints the firewall rules that a cluster needs. With hosts, ssh's own address is asked of "
      "the first one.",
      "lockstep cluster rules");
  add_host_options(app, given);
  if (!app.parse(arguments)) return kExitOk;
  fmt::print("{}", rules(ends_of_ssh(read_hosts(given), given.remote)));
  return kExitOk;
}

}  // namespace lockstep
