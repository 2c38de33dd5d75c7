// Writes the keys and configuration with which every host of a lab reaches every other by ssh,
// without a password or a prompt and independently of the machine's own settings.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lockstep {

struct SshHost {
  std::string name, address;
  std::string user = "root";
};

struct SshFiles {
  std::filesystem::path folder;  // the lab's
  std::vector<SshHost> hosts;
  std::filesystem::path connect;  // the program whose `netlab connect` reaches a host
};

// Writes FOLDER/ssh, which becomes /etc/ssh in hosts that share this machine's files and in the
// control host; FOLDER/ssh_server, for hosts with files of their own, which can be reached but
// reach none; and FOLDER/ssh_config, with which `ssh -F` reaches the hosts from outside. Throws
// MachineError where OpenSSH is not installed.
void write_ssh_files(const SshFiles& files);

}  // namespace lockstep
