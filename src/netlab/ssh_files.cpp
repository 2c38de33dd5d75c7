#include "netlab/ssh_files.h"

#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/program.h"
#include "base/text.h"

namespace lockstep {

namespace {

void need_program(const char* path, const char* package) {
  if (::access(path, X_OK) == 0) return;
  MachineError error("virtual hosts need {}, which is not there", path);
  error.set_advice(fmt::format("apt-get install {}; or hosts.sshd = false", package));
  throw error;
}

void make_key(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
  const ProgramEnd end = run_to_end({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C",
                                     "lockstep-netlab", "-f", path.string()});
  if (end.status != 0) {
    throw MachineError("ssh-keygen made no key in {}: {}", path.parent_path().string(),
                       trim(end.said));
  }
}

constexpr const char* kServer =
    "Port 22\n"
    "HostKey /etc/ssh/host_key\n"
    "PermitRootLogin prohibit-password\n"
    "PasswordAuthentication no\n"
    "KbdInteractiveAuthentication no\n"
    "UsePAM no\n"
    "UseDNS no\n"
    "PidFile none\n"
    "PrintMotd no\n"
    "PrintLastLog no\n"
    "MaxStartups 200\n"
    "MaxSessions 200\n"
    "Subsystem sftp internal-sftp\n";

// `ssh_folder` is where the keys are, as the reader of this configuration sees it.
std::string client_config(const SshFiles& files, const fs::path& ssh_folder, bool outside) {
  std::string text;
  for (const SshHost& host : files.hosts) {
    text += fmt::format("Host {}\n  HostName {}\n  User {}\n", host.name, host.address, host.user);
  }
  text += fmt::format(
      "Host *\n  IdentityFile \"{0}/key\"\n  IdentitiesOnly yes\n"
      "  GlobalKnownHostsFile \"{0}/known_hosts\"\n  UserKnownHostsFile none\n"
      "  StrictHostKeyChecking yes\n  BatchMode yes\n  LogLevel ERROR\n",
      ssh_folder.string());
  if (outside) {
    text += fmt::format(
        "  ProxyCommand \"{}\" netlab connect --dir \"{}\" %h %p\n"
        "  ProxyUseFdpass yes\n",
        files.connect.string(), files.folder.string());
  }
  return text;
}

}  // namespace

void write_ssh_files(const SshFiles& files) {
  need_program("/usr/sbin/sshd", "openssh-server");
  need_program("/usr/bin/ssh-keygen", "openssh-client");
  fs::path ssh = files.folder / "ssh";
  fs::create_directories(ssh);
  make_key(ssh / "key");
  make_key(ssh / "host_key");
  fs::copy_file(ssh / "key.pub", ssh / "authorized_keys", fs::copy_options::overwrite_existing);
  write_file(ssh / "known_hosts", "* " + read_file(ssh / "host_key.pub"));
  write_file(
      ssh / "sshd_config",
      fmt::format("{}AuthorizedKeysFile /etc/ssh/authorized_keys\nStrictModes no\n", kServer));
  write_file(ssh / "ssh_config", client_config(files, "/etc/ssh", false));
  const fs::path server = files.folder / "ssh_server";
  fs::create_directories(server);
  for (const char* file : {"host_key", "host_key.pub"}) {
    fs::copy_file(ssh / file, server / file, fs::copy_options::overwrite_existing);
  }
  write_file(server / "sshd_config",
             fmt::format("{}AuthorizedKeysFile .ssh/authorized_keys\n", kServer));
  write_file(files.folder / "ssh_config", client_config(files, ssh, true));
}

}  // namespace lockstep
