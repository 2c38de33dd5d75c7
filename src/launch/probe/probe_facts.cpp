// Finds out what a machine is and has, from /proc, /sys and a few system calls.
#include <arpa/inet.h>
#include <gnu/libc-version.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/control_group.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/link_speed.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "data/manifest/manifest.h"
#include "launch/hosts/host_address.h"
#include "launch/jobs/job_record.h"
#include "launch/probe/probe.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// Returns the first line of a file of /proc or /sys; empty when there is none.
std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(trim(line));
}

int64_t number_of(const fs::path& path, int64_t otherwise) {
  const std::string text = first_line(path);
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  return end == text.c_str() ? otherwise : value;
}

// Returns the value of "name: value" or "name   : value kB" in a file.
std::string entry_of(const fs::path& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || trim(line.substr(0, colon)) != name) continue;
    return std::string(trim(line.substr(colon + 1)));
  }
  return "";
}

std::vector<std::size_t> sizes_of(const std::vector<std::vector<int>>& nodes) {
  std::vector<std::size_t> out;
  for (const std::vector<int>& node : nodes) out.push_back(node.size());
  return out;
}

Json gpus() {
  Json out = Json::array();
  if (access("/proc/driver/nvidia/version", R_OK) != 0) return out;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(
      popen("timeout 5 nvidia-smi --query-gpu=name,memory.total,memory.free,driver_version "
            "--format=csv,noheader,nounits 2>/dev/null",
            "r"),
      pclose);
  char line[512];
  while (pipe && std::fgets(line, sizeof line, pipe.get()) != nullptr) {
    std::vector<std::string> cells = split(line, ',');
    if (cells.size() != 4) continue;
    auto bytes = [&](int cell) { return std::strtoll(cells[cell].c_str(), nullptr, 10) << 20; };
    out.push_back({{"name", trim(cells[0])},
                   {"memory_bytes", bytes(1)},
                   {"free_bytes", bytes(2)},
                   {"driver", trim(cells[3])}});
  }
  return out;
}

Json versions(const Json& gpu_list) {
  utsname system{};
  uname(&system);
  return {{"lockstep", LOCKSTEP_VERSION},
          {"driver", gpu_list.empty() ? "" : gpu_list[0].at("driver").get<std::string>()},
          {"kernel", system.release},
          {"machine", system.machine},
          {"glibc", gnu_get_libc_version()}};
}

// Describes the disk under a path that may not exist yet, and whether this user could write there.
Json disk_of(const std::string& wanted) {
  std::error_code failed;
  fs::path path = fs::absolute(wanted, failed);
  while (!fs::exists(path, failed) && path.has_relative_path()) path = path.parent_path();
  struct statvfs info {};
  if (statvfs(path.c_str(), &info) != 0) return {{"path", wanted}, {"free_bytes", -1}};
  return {{"path", wanted},
          {"below", path.string()},
          {"free_bytes", static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize)},
          {"writable", access(path.c_str(), W_OK) == 0}};
}

std::string numeric(const sockaddr* address) {
  char text[NI_MAXHOST] = "";
  if (address == nullptr) return "";
  if (address->sa_family != AF_INET && address->sa_family != AF_INET6) return "";
  socklen_t size = address->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  getnameinfo(address, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return text;
}

Json interfaces() {
  Json out = Json::array();
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return out;
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  for (ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    const std::string address = numeric(entry->ifa_addr);
    if (address.empty() || address.rfind("fe80:", 0) == 0) continue;
    const fs::path folder = fs::path("/sys/class/net") / entry->ifa_name;
    const int64_t speed = link_speed_mbit(entry->ifa_name);
    out.push_back({{"name", entry->ifa_name},
                   {"address", address},
                   {"up", (entry->ifa_flags & IFF_RUNNING) != 0},
                   {"loopback", (entry->ifa_flags & IFF_LOOPBACK) != 0},
                   {"speed_mbit", speed > 0 ? speed : -1},
                   {"mtu", number_of(folder / "mtu", -1)}});
  }
  return out;
}

Json network_settings() {
  const fs::path core = "/proc/sys/net/core", ipv4 = "/proc/sys/net/ipv4";
  auto largest = [](const std::string& three) {
    auto words = split_words(three);
    return words.size() == 3 ? std::strtoll(std::string(words[2]).c_str(), nullptr, 10) : -1;
  };
  return {{"slow_start_after_idle", number_of(ipv4 / "tcp_slow_start_after_idle", -1)},
          {"receive_bytes_max", largest(first_line(ipv4 / "tcp_rmem"))},
          {"send_bytes_max", largest(first_line(ipv4 / "tcp_wmem"))},
          {"congestion_control", first_line(ipv4 / "tcp_congestion_control")},
          {"rmem_max", number_of(core / "rmem_max", -1)},
          {"wmem_max", number_of(core / "wmem_max", -1)}};
}

// The hash is equal for equal corpora, since the manifest lists every file with its hash. Reports a
// problem unless all listed files exist with their sizes.
Json corpus_facts(const fs::path& folder) {
  Json out = {{"folder", folder.string()}, {"hash", ""}, {"problem", ""}};
  try {
    const Manifest manifest = read_manifest(folder);
    out["hash"] = sha256_of_file(folder / kManifestName);
    for (const FileRecord& file : manifest.files) {
      std::error_code failed;
      const auto bytes = fs::file_size(folder / file.name, failed);
      if (failed || static_cast<int64_t>(bytes) == file.bytes) {
        if (failed) out["problem"] = file.name + " is missing";
        continue;
      }
      out["problem"] =
          fmt::format("{} has {} bytes, its manifest says {}", file.name,
                      with_commas(static_cast<int64_t>(bytes)), with_commas(file.bytes));
    }
  } catch (const Error& error) {
    out["problem"] = error.what();
  }
  return out;
}

Json config_facts(const fs::path& file) {
  try {
    return {{"file", file.string()}, {"hash", sha256_of_file(file)}, {"problem", ""}};
  } catch (const Error& error) {
    return {{"file", file.string()}, {"hash", ""}, {"problem", error.what()}};
  }
}

}  // namespace

Json probe_facts(const Json& request) {
  const std::string folder = request.value("folder", "");
  const bool folder_there = folder.empty() || chdir(in_home(folder).c_str()) == 0;
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  const Json gpu_list = gpus();
  const CoreFacts cores = core_facts();
  const UsableMemory memory = usable_memory();
  Json out = {{"hostname", name},
              {"versions", versions(gpu_list)},
              {"processor", entry_of("/proc/cpuinfo", "model name")},
              {"cores", cores.threads()},
              {"node_cores", sizes_of(cores.nodes)},
              {"core_limit", cores.limit},
              {"load", std::strtod(first_line("/proc/loadavg").c_str(), nullptr)},
              {"memory_bytes", memory.total},
              {"free_memory_bytes", memory.free},
              {"gpus", gpu_list},
              {"interfaces", interfaces()},
              {"ssh_address", own_ssh_address()},
              {"network", network_settings()},
              {"folder_there", folder_there}};
  out["disks"] = Json::array();
  for (const std::string& path : request.value("disks", std::vector<std::string>{})) {
    out["disks"].push_back(disk_of(path));
  }
  if (request.contains("config"))
    out["config"] = config_facts(request["config"].get<std::string>());
  if (request.contains("corpus"))
    out["corpus"] = corpus_facts(request["corpus"].get<std::string>());
  return out;
}

}  // namespace lockstep
