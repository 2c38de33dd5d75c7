#include "base/host_usage.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/text.h"

namespace lockstep {
namespace {

// Unlike read_file: what is not there, or says nothing (the speed of a loopback), is empty.
std::string text_of(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string out;
  char buffer[8192];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;) {
    out.append(buffer, static_cast<std::size_t>(n));
  }
  close(fd);
  return out;
}

uint64_t number_of(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Words of the first line that starts with `head`; none when there is no such line.
std::vector<std::string_view> words_after(std::string_view text, std::string_view head) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = trim(text.substr(at, end - at));
    if (line.starts_with(head)) return split_words(line.substr(head.size()));
    at = end + 1;
  }
  return {};
}

int64_t kilobytes(std::string_view text, std::string_view head) {
  auto words = words_after(text, head);
  return words.empty() ? 0 : static_cast<int64_t>(number_of(words[0])) * 1024;
}

// /proc/net/snmp has a line of names and a line of values for each protocol.
uint64_t retransmitted_segments() {
  std::string text = text_of("/proc/net/snmp");
  std::size_t names_at = text.find("Tcp: "), values_at = text.find("Tcp: ", names_at + 1);
  if (names_at == std::string::npos || values_at == std::string::npos) return 0;
  auto names = words_after(std::string_view(text).substr(names_at), "Tcp: ");
  auto values = words_after(std::string_view(text).substr(values_at), "Tcp: ");
  auto at = std::find(names.begin(), names.end(), "RetransSegs") - names.begin();
  return at < static_cast<std::ptrdiff_t>(values.size()) ? number_of(values[at]) : 0;
}

double link_speed(const std::string& interface) {
  if (interface.empty()) return 0;
  std::string text = text_of("/sys/class/net/" + interface + "/speed");  // Mbit/s, or -1
  return text.starts_with('-') ? 0 : static_cast<double>(number_of(trim(text))) * 1e6 / 8;
}

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

HostUsage::HostUsage(std::string interface)
    : interface_(std::move(interface)), before_(read_counters()) {}

HostUsage::Counters HostUsage::read_counters() const {
  Counters out;
  out.time = std::chrono::steady_clock::now();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  out.process_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  std::string stat = text_of("/proc/stat");
  for (const std::string& line : split(stat, '\n')) {
    if (!line.starts_with("cpu")) break;  // the lines of the cores come first
    auto words = split_words(line);
    uint64_t total = 0, idle = 0;
    // user nice system idle iowait irq softirq steal; guest time is part of user's.
    for (std::size_t i = 1; i < words.size() && i <= 8; ++i) {
      total += number_of(words[i]);
      if (i == 4 || i == 5) idle += number_of(words[i]);
    }
    out.total.push_back(total);
    out.busy.push_back(total - idle);
  }
  if (!interface_.empty()) {
    auto words = words_after(text_of("/proc/net/dev"), interface_ + ":");
    if (words.size() > 8) {
      out.in_bytes = number_of(words[0]);
      out.out_bytes = number_of(words[8]);
    }
  }
  out.retransmits = retransmitted_segments();
  return out;
}

HostFigures HostUsage::sample() {
  Counters now = read_counters();
  HostFigures out;
  std::chrono::duration<double> passed = now.time - before_.time;
  double seconds = std::max(passed.count(), 1e-6);
  auto rate = [&](uint64_t before, uint64_t after) {
    return after < before ? 0 : static_cast<double>(after - before) / seconds;
  };
  out.process_cores = (now.process_seconds - before_.process_seconds) / seconds;
  busy_cores_.clear();
  for (std::size_t i = 0; i < std::min(now.total.size(), before_.total.size()); ++i) {
    double busy = share(now.busy[i] - before_.busy[i], now.total[i] - before_.total[i]);
    if (i == 0) out.machine_share = busy;
    if (i > 0) busy_cores_.push_back(busy);
  }
  out.cores = static_cast<int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t mask;
  out.usable_cores = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : out.cores;
  out.resident_bytes = kilobytes(text_of("/proc/self/status"), "VmRSS:");
  std::string memory = text_of("/proc/meminfo");
  out.available_bytes = kilobytes(memory, "MemAvailable:");
  out.memory_bytes = kilobytes(memory, "MemTotal:");
  std::strncpy(out.interface, interface_.c_str(), sizeof out.interface - 1);
  out.in_bytes_per_second = rate(before_.in_bytes, now.in_bytes);
  out.out_bytes_per_second = rate(before_.out_bytes, now.out_bytes);
  out.link_bytes_per_second = link_speed(interface_);
  out.retransmits_per_second = rate(before_.retransmits, now.retransmits);
  before_ = std::move(now);
  return out;
}

int64_t free_disk_bytes(const std::string& folder) {
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0) return -1;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

}  // namespace lockstep
