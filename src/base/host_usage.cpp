#include "base/host_usage.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/control_group.h"
#include "base/link_speed.h"

namespace lockstep {
namespace {

double share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// The hash FNV-1a.
uint64_t hash_of(const void* bytes, std::size_t count, uint64_t hash) {
  for (std::size_t i = 0; i < count; ++i) {
    hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace

HostUsage::HostUsage(HostUsageOptions options)
    : options_(std::move(options)),
      energy_(options_.machine ? CpuEnergy(options_.root) : CpuEnergy("/none")),
      gpus_(options_.machine ? options_.nvml : "") {
  read_slow_figures();
  before_ = read_counters();
}

void HostUsage::read_slow_figures() {
  if (!options_.interface.empty()) {
    link_bytes_per_second_ =
        static_cast<double>(link_speed_mbit(options_.interface, options_.root)) * 1e6 / 8;
  }
  const CoreLimit limit = core_limit(options_.root);
  core_limit_ = limit.cores;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  cores_id_ = hash_of(&mask, sizeof mask, 0xcbf29ce484222325ULL);
  if (limit.cores > 0) cores_id_ = hash_of(limit.group.data(), limit.group.size(), cores_id_);
}

// Only whole disks have a device in sysfs: partitions and virtual disks (dm, md, loop) have none.
bool HostUsage::is_whole_disk(std::string_view name) {
  auto found = disks_.find(name);
  if (found == disks_.end()) {
    std::string folder(name);
    std::replace(folder.begin(), folder.end(), '/', '!');
    const std::string device = options_.root + "/sys/block/" + folder + "/device";
    found = disks_.emplace(name, access(device.c_str(), F_OK) == 0).first;
  }
  return found->second;
}

HostUsage::Counters HostUsage::read_counters() {
  Counters out;
  out.time = std::chrono::steady_clock::now();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  out.process_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  out.process_disks = parse_process_io(file("/proc/self/io"));
  out.ticks = parse_cpu_ticks(file("/proc/stat"));
  if (!options_.interface.empty()) {
    out.net = parse_interface(file("/proc/net/dev"), options_.interface);
  }
  out.tcp = parse_tcp(file("/proc/net/snmp"));
  if (options_.machine) {
    out.disks = parse_disks(file("/proc/diskstats"),
                            [this](std::string_view name) { return is_whole_disk(name); });
  }
  return out;
}

HostFigures HostUsage::sample() {
  constexpr uint64_t kSlowEvery = 30;
  if (++samples_ % kSlowEvery == 0) read_slow_figures();
  Counters now = read_counters();
  HostFigures out;
  const std::chrono::duration<double> passed = now.time - before_.time;
  out.samples = samples_;
  out.seconds = std::max(passed.count(), 1e-6);
  auto rate = [&](uint64_t before, uint64_t after) {
    return after < before ? 0 : static_cast<double>(after - before) / out.seconds;
  };
  out.process_cores = (now.process_seconds - before_.process_seconds) / out.seconds;
  busy_cores_.clear();
  const CpuTicks &first = before_.ticks, &last = now.ticks;
  for (std::size_t i = 0; i < std::min(last.total.size(), first.total.size()); ++i) {
    const double busy = last.total[i] <= first.total[i] || last.busy[i] < first.busy[i]
                            ? 0
                            : share(last.busy[i] - first.busy[i], last.total[i] - first.total[i]);
    if (i == 0) out.machine_share = busy;
    if (i > 0) busy_cores_.push_back(busy);
  }
  out.cores = static_cast<int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t mask;
  out.usable_cores = sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : out.cores;
  out.core_limit = core_limit_;
  out.cores_id = cores_id_;
  out.resident_bytes = parse_kilobytes(file("/proc/self/status"), "VmRSS:");
  const std::string memory = file("/proc/meminfo");
  out.available_bytes = parse_kilobytes(memory, "MemAvailable:");
  out.memory_bytes = parse_kilobytes(memory, "MemTotal:");
  options_.interface.copy(out.interface, sizeof out.interface - 1);
  out.in_bytes_per_second = rate(before_.net.in_bytes, now.net.in_bytes);
  out.out_bytes_per_second = rate(before_.net.out_bytes, now.net.out_bytes);
  out.link_bytes_per_second = link_bytes_per_second_;
  out.retransmits_per_second = rate(before_.tcp.retransmitted, now.tcp.retransmitted);
  out.read_bytes_per_second = rate(before_.process_disks.read_bytes, now.process_disks.read_bytes);
  out.written_bytes_per_second =
      rate(before_.process_disks.written_bytes, now.process_disks.written_bytes);
  if (options_.machine) sample_machine(out, now);
  before_ = std::move(now);
  return out;
}

// `own` holds the figures of the same sample for this process. before_ still holds the counters of
// the previous sample.
void HostUsage::sample_machine(const HostFigures& own, const Counters& now) {
  MachineFigures& m = machine_;
  auto rate = [&](uint64_t before, uint64_t after) {
    return after < before ? 0 : static_cast<double>(after - before) / own.seconds;
  };
  m.samples = own.samples;
  m.seconds = own.seconds;
  m.cpu_share = own.machine_share;
  m.cores = own.cores;
  for (std::size_t i = 0; i < std::min<std::size_t>(kMostCores, busy_cores_.size()); ++i) {
    m.core_percent[i] = static_cast<uint8_t>(std::lround(100 * std::min(1.0, busy_cores_[i])));
  }
  if (energy_.is_known()) {
    const double joules = energy_.joules();
    m.cpu_watts = (joules - m.cpu_joules) / own.seconds;
    m.cpu_joules = joules;
  }
  m.memory_bytes = own.memory_bytes;
  m.available_bytes = own.available_bytes;
  std::memcpy(m.interface, own.interface, sizeof m.interface);
  m.link_bytes_per_second = own.link_bytes_per_second;
  m.in_bytes_per_second = own.in_bytes_per_second;
  m.out_bytes_per_second = own.out_bytes_per_second;
  const InterfaceCounters &first = before_.net, &last = now.net;
  m.in_packets_per_second = rate(first.in_packets, last.in_packets);
  m.out_packets_per_second = rate(first.out_packets, last.out_packets);
  m.drops_per_second = rate(first.in_drops + first.out_drops, last.in_drops + last.out_drops);
  m.errors_per_second = rate(first.in_errors + first.out_errors, last.in_errors + last.out_errors);
  m.segments_per_second = rate(before_.tcp.sent, now.tcp.sent);
  m.retransmits_per_second = own.retransmits_per_second;
  m.disk_read_bytes_per_second = rate(before_.disks.read_bytes, now.disks.read_bytes);
  m.disk_written_bytes_per_second = rate(before_.disks.written_bytes, now.disks.written_bytes);
  m.gpus = 0;
  for (const GpuFigures& gpu : gpus_.sample(own.seconds)) m.gpu[m.gpus++] = gpu;
}

int64_t free_disk_bytes(const std::string& folder) {
  struct statvfs disk {};
  if (statvfs(folder.c_str(), &disk) != 0) return -1;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

}  // namespace lockstep
