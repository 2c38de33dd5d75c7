#include "base/proc_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace lockstep {
namespace {

// Calls `f` with each line until it returns false.
template <typename F>
void each_line(std::string_view text, const F& f) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (!f(text.substr(at, end - at))) return;
    at = end + 1;
  }
}

// Returns the words after `head` in the first line that starts with it, or none when there is no
// such line.
std::vector<std::string_view> words_after(std::string_view text, std::string_view head) {
  std::vector<std::string_view> out;
  each_line(text, [&](std::string_view line) {
    line = trim(line);
    if (!line.starts_with(head)) return true;
    out = split_words(line.substr(head.size()));
    return false;
  });
  return out;
}

}  // namespace

std::string small_file(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::string out;
  char buffer[16384];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;) {
    out.append(buffer, static_cast<std::size_t>(n));
  }
  close(fd);
  return out;
}

uint64_t parse_number(std::string_view text) {
  text = trim(text);
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

CpuTicks parse_cpu_ticks(std::string_view stat) {
  CpuTicks out;
  each_line(stat, [&](std::string_view line) {
    if (!line.starts_with("cpu")) return false;  // the lines of the CPUs come first
    const auto words = split_words(line);
    const std::size_t at = words[0].size() == 3 ? 0 : 1 + parse_number(words[0].substr(3));
    constexpr std::size_t kMost = 1 << 16;
    if (at >= kMost) return true;
    if (out.total.size() <= at) {
      out.total.resize(at + 1);
      out.busy.resize(at + 1);
    }
    uint64_t total = 0, idle = 0;
    // The columns are user nice system idle iowait irq softirq steal; user includes the guest time.
    for (std::size_t i = 1; i < words.size() && i <= 8; ++i) {
      const uint64_t ticks = parse_number(words[i]);
      total += ticks;
      if (i == 4 || i == 5) idle += ticks;
    }
    out.total[at] = total;
    out.busy[at] = total - idle;
    return true;
  });
  return out;
}

InterfaceCounters parse_interface(std::string_view net_dev, const std::string& name) {
  InterfaceCounters out;
  if (name.empty()) return out;
  // Columns received: bytes packets errs drop fifo frame compressed multicast; sent: bytes packets
  // errs drop fifo colls carrier compressed.
  const auto words = words_after(net_dev, name + ":");
  if (words.size() < 12) return out;
  out.in_bytes = parse_number(words[0]);
  out.in_packets = parse_number(words[1]);
  out.in_errors = parse_number(words[2]);
  out.in_drops = parse_number(words[3]);
  out.out_bytes = parse_number(words[8]);
  out.out_packets = parse_number(words[9]);
  out.out_errors = parse_number(words[10]);
  out.out_drops = parse_number(words[11]);
  return out;
}

// The file has a line of names and a line of values for each protocol.
TcpCounters parse_tcp(std::string_view snmp) {
  TcpCounters out;
  constexpr std::string_view kHead = "Tcp: ";
  const std::size_t names_at = snmp.find(kHead);
  if (names_at == std::string_view::npos) return out;
  const std::size_t values_at = snmp.find(kHead, names_at + 1);
  if (values_at == std::string_view::npos) return out;
  const auto names = words_after(snmp.substr(names_at), kHead);
  const auto values = words_after(snmp.substr(values_at), kHead);
  for (std::size_t i = 0; i < std::min(names.size(), values.size()); ++i) {
    if (names[i] == "OutSegs") out.sent = parse_number(values[i]);
    if (names[i] == "RetransSegs") out.retransmitted = parse_number(values[i]);
  }
  return out;
}

DiskCounters parse_disks(std::string_view diskstats,
                         const std::function<bool(std::string_view)>& counts) {
  DiskCounters out;
  constexpr uint64_t kSector = 512;  // bytes; diskstats uses this size for every disk
  each_line(diskstats, [&](std::string_view line) {
    // Columns: major minor name reads merged SECTORS milliseconds writes merged SECTORS ...
    const auto words = split_words(line);
    if (words.size() < 10 || !counts(words[2])) return true;
    out.read_bytes += parse_number(words[5]) * kSector;
    out.written_bytes += parse_number(words[9]) * kSector;
    return true;
  });
  return out;
}

DiskCounters parse_process_io(std::string_view io) {
  auto value = [&](std::string_view head) {
    const auto words = words_after(io, head);
    return words.empty() ? 0 : parse_number(words[0]);
  };
  return {.read_bytes = value("read_bytes:"), .written_bytes = value("write_bytes:")};
}

int64_t parse_entry(std::string_view text, std::string_view head) {
  const auto words = words_after(text, head);
  return words.empty() ? 0 : static_cast<int64_t>(parse_number(words[0]));
}

int64_t parse_kilobytes(std::string_view text, std::string_view head) {
  return parse_entry(text, head) * 1024;
}

std::vector<int> parse_core_list(std::string_view text) {
  std::vector<int> out;
  for (const std::string& part : split(trim(text), ',')) {
    if (part.empty()) continue;
    const std::size_t dash = part.find('-');
    const auto first = static_cast<int>(parse_number(part.substr(0, dash)));
    const auto last =
        dash == std::string::npos ? first : static_cast<int>(parse_number(part.substr(dash + 1)));
    for (int core = first; core <= last; ++core) out.push_back(core);
  }
  return out;
}

double parse_core_limit(std::string_view cpu_max) {
  const auto words = split_words(cpu_max);
  if (words.size() < 2 || words[0] == "max") return 0;
  const uint64_t quota = parse_number(words[0]), period = parse_number(words[1]);
  return period == 0 ? 0 : static_cast<double>(quota) / static_cast<double>(period);
}

}  // namespace lockstep
