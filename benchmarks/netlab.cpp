// What the virtual network of `lockstep netlab` does against what it is asked for: round trips,
// rates, loss and jitter, and the processor time that the switch takes for them.
//
//   sudo netlab
//
// Both hosts and the probes are threads of this process; docs/netlab.md has the results.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "support/net_probe.h"

namespace {

using namespace lockstep;

// Seconds of processor time of the switch's thread so far.
double switch_seconds() {
  double ticks = 0;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    std::string text = read_file(task.path() / "stat");
    if (text.find("(netlab-switch)") == std::string::npos) continue;
    std::vector<std::string> fields = split(text.substr(text.rfind(')') + 2), ' ');
    ticks += std::stod(fields[11]) + std::stod(fields[12]);  // utime and stime, proc(5)
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

LabConfig two_hosts(const std::string& network) {
  return read_lab_config("[network]\n" + network +
                             "[hosts]\nnames = ['a', 'b']\nsshd = false\n"
                             "sysctl = ['net.ipv4.tcp_rmem=4096 131072 67108864',"
                             "'net.ipv4.tcp_wmem=4096 65536 67108864']\n",
                         "netlab");
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void measure_delay(double delay_ms) {
  Lab lab(two_hosts(fmt::format("delay_ms = {}\n", delay_ms)), {}, {});
  std::vector<double> times = ping(lab, "a", "b", {.count = 200, .every_seconds = 0.005});
  fmt::print(
      "delay {:5} ms: round trip {:8.3f} ms (median; 5 % {:.3f}, 95 % {:.3f}), asked {:.1f}\n",
      delay_ms, quantile(times, 0.5) * 1e3, quantile(times, 0.05) * 1e3,
      quantile(times, 0.95) * 1e3, 2 * delay_ms);
}

void measure_rate(double rate_mbit, double delay_ms) {
  Lab lab(two_hosts(fmt::format("rate_mbit = {}\ndelay_ms = {}\n", rate_mbit, delay_ms)), {}, {});
  constexpr double kSeconds = 3;
  double before = switch_seconds();
  double rate = tcp_rate(lab, "a", "b", kSeconds);
  double cpu = (switch_seconds() - before) / kSeconds;
  double asked = rate_mbit * 1448 / 1538;
  PortCounts counts = lab.counts("a");
  fmt::print(
      "rate {:5} Mbit/s, delay {:3} ms: {:7.1f} Mbit/s of data ({}), switch {:4.1f} % of a core, "
      "{:.1f} % a Gbit/s; {:.1f} kB a frame, {} dropped\n",
      rate_mbit, delay_ms, rate / 1e6,
      rate_mbit > 0 ? fmt::format("asked {:.1f}: {:+.1f} %", asked, 100 * (rate / 1e6 / asked - 1))
                    : "no limit",
      cpu * 100, cpu * 100 / (rate / 1e9),
      static_cast<double>(counts.bytes_in) / 1e3 / static_cast<double>(counts.frames_in),
      counts.overrun);
}

void measure_loss(double loss) {
  Lab lab(two_hosts(fmt::format("loss = {}\n", loss)), {}, {});
  std::vector<double> times =
      ping(lab, "a", "b", {.count = 20000, .every_seconds = 1e-4, .wait_seconds = 0.2});
  double lost = static_cast<double>(
      std::count_if(times.begin(), times.end(), [](double t) { return t < 0; }));
  double share = lost / static_cast<double>(times.size());
  fmt::print("loss {:6}: {:.4f} of round trips, asked {:.4f}\n", loss, share,
             1 - (1 - loss) * (1 - loss));
}

void measure_jitter(double delay_ms, double jitter_ms) {
  Lab lab(two_hosts(fmt::format("delay_ms = {}\njitter_ms = {}\n", delay_ms, jitter_ms)), {}, {});
  std::vector<double> times = ping(lab, "a", "b", {.count = 200, .every_seconds = 0.012});
  double mean =
      std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
  double squares = 0;
  for (double t : times) squares += (t - mean) * (t - mean);
  fmt::print(
      "delay {} +- {} ms: round trip mean {:.2f} ms (asked {}), standard deviation {:.2f} ms "
      "(two even distributions: {:.2f})\n",
      delay_ms, jitter_ms, mean * 1e3, 2 * delay_ms,
      std::sqrt(squares / static_cast<double>(times.size())) * 1e3, jitter_ms * std::sqrt(2.0 / 3));
}

}  // namespace

int main() {
  try {
    for (double delay : {0.0, 0.1, 5.0, 20.0, 100.0}) measure_delay(delay);
    for (double rate : {10.0, 100.0, 1000.0, 0.0}) measure_rate(rate, 0);
    for (double delay : {5.0, 20.0}) measure_rate(1000, delay);
    measure_rate(100, 100);
    for (double loss : {0.001, 0.01, 0.1}) measure_loss(loss);
    measure_jitter(20, 5);
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.describe());
    return error.exit_code();
  }
}
