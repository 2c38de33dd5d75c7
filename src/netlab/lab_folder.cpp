#include "netlab/lab_folder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "netlab/tap.h"

namespace lockstep {

namespace {

using nlohmann::json;

sockaddr_un socket_address(const fs::path& folder) {
  std::string path = (folder / kLabSocket).string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw ConfigError("--dir {}: the path is too long for a socket: at most {} bytes",
                      folder.string(), sizeof address.sun_path - std::strlen(kLabSocket) - 2);
  }
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

std::string read_request(int socket) {
  std::string text;
  char buffer[4096];
  for (;;) {
    ssize_t size = ::recv(socket, buffer, sizeof buffer, 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(size));
  }
}

// The process number may have been reused since; a virtual host is known by its process name.
bool is_virtual_host(pid_t pid) {
  std::error_code none;
  fs::path name = fmt::format("/proc/{}/comm", pid);
  return fs::exists(name, none) && trim(read_file(name)) == "netlab-host";
}

void clean_up_later(int channel, const fs::path& folder, const std::vector<fs::path>& groups) {
  char none;
  while (::read(channel, &none, 1) < 0 && errno == EINTR) {
  }
  // The hosts die after the process that made them, and their groups become empty soon after.
  for (int tries = 0; tries < 100; ++tries) {
    bool left = false;
    std::error_code failed;
    for (const fs::path& group : groups) {
      fs::remove(group, failed);
      left |= fs::exists(group, failed);
    }
    if (!folder.empty()) fs::remove_all(folder, failed);
    left |= !folder.empty() && fs::exists(folder, failed);
    if (!left) break;
    ::usleep(20000);
  }
}

// Returns a closed descriptor when nobody listens.
Descriptor connect_to_lab(const fs::path& folder) {
  sockaddr_un address = socket_address(folder);
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    socket.close();
  }
  return socket;
}

void need_lab(const fs::path& folder) {
  if (folder.empty()) {
    throw ConfigError("which lab? --dir DIR, or {} in the environment", kLabVariable);
  }
  if (!lab_runs_in(folder)) throw ConfigError("{}: no lab runs there", folder.string());
}

}  // namespace

void write_lab_state(const fs::path& folder, const std::vector<LabStateHost>& hosts) {
  json state = json::object();
  for (const LabStateHost& host : hosts) {
    state[host.name] = {{"process", host.namespaces.init},
                        {"cpu_group", host.namespaces.cpu_group.string()},
                        {"own_files", host.namespaces.own_files}};
  }
  write_file(folder / kLabState, state.dump(2) + "\n");
}

bool lab_runs_in(const fs::path& folder) {
  return fs::exists(folder / kLabSocket) && connect_to_lab(folder).open();
}

HostNamespaces find_host(const fs::path& folder, const std::string& host) {
  need_lab(folder);
  json state = json::parse(read_file(folder / kLabState));
  std::vector<std::string> names;
  for (const auto& item : state.items()) names.push_back(item.key());
  if (!state.contains(host)) {
    throw ConfigError("no host \"{}\" is up in this lab{} ({})", host, did_you_mean(host, names),
                      join(names, ", "));
  }
  pid_t init = state[host].at("process");
  if (!is_virtual_host(init)) {
    throw ConfigError("a host's processes cannot be entered from another host: ssh {}", host);
  }
  return {init, state[host].at("cpu_group").get<std::string>(),
          state[host].at("own_files").get<bool>()};
}

Descriptor listen_in(const fs::path& folder) {
  sockaddr_un address = socket_address(folder);
  std::error_code ignored;
  fs::remove(folder / kLabSocket, ignored);
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), 16) != 0) {
    throw MachineError("cannot listen in {}: {}", folder.string(), std::strerror(errno));
  }
  return socket;
}

void answer_request(int listening, const std::function<std::string(const std::string&)>& answer) {
  Descriptor socket(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.open()) return;
  timeval limit{.tv_sec = 2, .tv_usec = 0};  // so that no client delays the schedule
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  std::string request = read_request(socket.get());
  if (request.empty()) return;  // only checks that the lab runs
  std::string text = answer(request);
  (void)!::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

void send_event(const fs::path& folder, const std::string& toml) {
  need_lab(folder);
  Descriptor socket = connect_to_lab(folder);
  (void)!::send(socket.get(), toml.data(), toml.size(), MSG_NOSIGNAL);
  ::shutdown(socket.get(), SHUT_WR);
  std::string answer = read_request(socket.get());
  if (!answer.empty()) throw ConfigError("{}", answer);
}

void pass_connection(const fs::path& folder, const std::string& address, int port, int output) {
  HostNamespaces control = find_host(folder, "control");
  Descriptor network(
      ::open(fmt::format("/proc/{}/ns/net", control.init).c_str(), O_RDONLY | O_CLOEXEC));
  Descriptor socket;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  if (::inet_pton(AF_INET, address.c_str(), &to.sin_addr) != 1) {
    throw ConfigError("\"{}\" is no IPv4 address", address);
  }
  {
    InNetworkNamespace there(network.get());
    socket = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  timeval limit{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    throw MachineError("cannot reach {} port {} in the lab: {}", address, port,
                       errno == EINPROGRESS ? "no answer in 10 s" : std::strerror(errno));
  }
  limit = {};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  int value = socket.get();
  std::memcpy(CMSG_DATA(header), &value, sizeof value);
  if (::sendmsg(output, &message, 0) < 0) {
    throw MachineError("cannot hand a connection over: {}; this is for ssh's ProxyUseFdpass",
                       std::strerror(errno));
  }
}

std::unique_ptr<CleanupProcess> start_cleanup(const fs::path& folder,
                                              const std::vector<fs::path>& groups) {
  if (folder.empty() && groups.empty()) return nullptr;
  return std::make_unique<CleanupProcess>(
      "netlab-cleanup", [=](int channel) { clean_up_later(channel, folder, groups); });
}

}  // namespace lockstep
