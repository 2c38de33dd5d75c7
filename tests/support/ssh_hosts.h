// Starts hosts that ssh can reach, for tests: one sshd each on a free port of 127.0.0.1, with its
// own keys and home folder. They end with this object, and with this process however it ends.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

class SshHosts {
 public:
  // Returns why hosts cannot be made here; empty when they can.
  static std::string missing() {
    for (const char* program : {"/usr/sbin/sshd", "/usr/bin/ssh", "/usr/bin/ssh-keygen"}) {
      if (::access(program, X_OK) != 0) return fmt::format("no {} here", program);
    }
    if (::geteuid() != 0) return "sshd needs root";
    if (std::system("unshare -m true 2>/dev/null") != 0) return "no mount namespaces here";
    return "";
  }

  // Starts hosts n0, n1, ... that ssh -F config() knows. `environment`: more variables of their
  // processes, "NAME=VALUE NAME=VALUE".
  explicit SshHosts(int count, std::string environment = "")
      : environment_(std::move(environment)) {
    ::mkdir("/run/sshd", 0755);  // sshd needs it; a running system has it
    run(fmt::format("ssh-keygen -q -t ed25519 -N '' -f {}/key", root()));
    std::string config;
    for (int i = 0; i < count; ++i) config += add_host(i);
    write_file(root() + "/config", config);
    for (const Server& server : servers_) wait_for(server.port);
  }
  ~SshHosts() {
    for (const Server& server : servers_) {
      ::kill(server.pid, SIGTERM);
      ::waitpid(server.pid, nullptr, 0);
    }
  }
  SshHosts(const SshHosts&) = delete;
  SshHosts& operator=(const SshHosts&) = delete;

  std::string config() const { return root() + "/config"; }
  std::string root() const { return folder_.path().string(); }
  fs::path home(int host) const { return folder_.path() / fmt::format("home{}", host); }
  int port(int host) const { return servers_.at(host).port; }

 private:
  struct Server {
    pid_t pid;
    int port;
  };

  static void run(const std::string& command) {
    if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
  }

  static int free_port() {
    int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    if (::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("no free port");
    }
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    ::close(socket);
    return ntohs(address.sin_port);
  }

  // Starts the host's sshd, and returns the lines of configuration by which ssh finds it.
  std::string add_host(int i) {
    std::string host_key = fmt::format("{}/host{}", root(), i), conf = host_key + ".conf";
    fs::create_directories(home(i) / "bin");
    write_file(home(i) / "fstab", "# static\nproc /proc proc defaults 0 0");  // no final line break
    run(fmt::format("ssh-keygen -q -t ed25519 -N '' -f {}", host_key));
    int port = free_port();
    write_file(conf, fmt::format("ListenAddress 127.0.0.1\nPort {0}\nHostKey {1}\nPidFile none\n"
                                 "AuthorizedKeysFile {2}/key.pub\nStrictModes no\nUsePAM no\n"
                                 "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
                                 "PermitRootLogin prohibit-password\nMaxStartups 100\n"
                                 "SetEnv HOME={3} PATH={3}/bin:/usr/sbin:/usr/bin:/sbin:/bin {4}\n",
                                 port, host_key, root(), home(i).string(), environment_));
    std::string known = split_key(read_file(host_key + ".pub"));
    write_file(host_key + ".known", fmt::format("[127.0.0.1]:{} {}\n", port, known));
    std::string log = host_key + ".log", fstab = (home(i) / "fstab").string();
    pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (::unshare(CLONE_NEWNS) != 0 ||
          ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          (fs::exists("/etc/fstab") &&
           ::mount(fstab.c_str(), "/etc/fstab", nullptr, MS_BIND, nullptr) != 0)) {
        ::_exit(126);
      }
      ::execl("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-f", conf.c_str(), "-E", log.c_str(),
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    servers_.push_back({pid, port});
    return fmt::format(
        "Host n{}\n  HostName 127.0.0.1\n  Port {}\n  User root\n  IdentityFile {}/key\n"
        "  IdentitiesOnly yes\n  UserKnownHostsFile {}.known\n  StrictHostKeyChecking yes\n",
        i, port, root(), host_key);
  }

  static std::string split_key(const std::string& line) {  // "ssh-ed25519 AAAA... user@host"
    return line.substr(0, line.rfind(' '));
  }

  static void wait_for(int port) {
    sockaddr_in address{.sin_family = AF_INET,
                        .sin_port = htons(static_cast<uint16_t>(port)),
                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    for (int i = 0; i < 500; ++i) {
      int socket = ::socket(AF_INET, SOCK_STREAM, 0);
      int failed = ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
      ::close(socket);
      if (failed == 0) return;
      ::usleep(10000);
    }
    throw std::runtime_error("sshd did not start");
  }

  const std::string environment_;
  TemporaryFolder folder_;
  std::vector<Server> servers_;
};

}  // namespace lockstep
