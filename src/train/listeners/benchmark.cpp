#include "train/listeners/benchmark.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/statistics.h"
#include "base/text.h"

namespace lockstep {

int64_t peak_resident_bytes() {
  for (const std::string& line : read_lines("/proc/self/status")) {
    auto words = split_words(line);
    if (words.size() >= 2 && words[0] == "VmHWM:") return std::stoll(std::string(words[1])) * 1024;
  }
  throw MachineError("/proc/self/status does not tell VmHWM");
}

void BucketObserver::on_step(const StepRecord& record) {
  if (record.step <= skipped_) return;
  // The loop calls this right after the step; the time for data lies at the step's start.
  auto now = std::chrono::steady_clock::now();
  const double computing = record.seconds - record.data_seconds;
  std::vector<MeasuredBucket>& step = steps_.emplace_back();
  for (const BucketClock::Entry& entry : clock_.buckets) {
    if (entry.mark) {
      step.push_back({entry.bytes, clock_.account->seconds_of_device_until(entry.mark)});
      continue;
    }
    double before_now = std::chrono::duration<double>(now - entry.ready).count();
    step.push_back({entry.bytes, std::max(0.0, computing - before_now)});
  }
}

void add_steps(const std::vector<StepRecord>& records,
               const std::vector<std::vector<MeasuredBucket>>& buckets, RunMeasurement& out) {
  for (const StepRecord& r : records) {
    out.steps.push_back({r.seconds, r.compute_seconds, r.wait_seconds, r.data_seconds, r.targets});
  }
  if (buckets.empty()) return;
  for (std::size_t b = 0; b < buckets.front().size(); ++b) {
    std::vector<double> ready;
    for (const auto& step : buckets) {
      if (b < step.size()) ready.push_back(step[b].ready_seconds);
    }
    out.buckets.push_back({buckets.front()[b].bytes, median(std::move(ready))});
  }
}

std::string benchmark_report(const std::vector<StepRecord>& records,
                             const std::vector<int64_t>& peak_bytes, const std::string& unit) {
  std::vector<double> seconds;
  double total = 0, wait = 0, data = 0;
  int64_t targets = 0, sources = 0, items = 0;
  for (const StepRecord& r : records) {
    seconds.push_back(r.seconds);
    total += r.seconds;
    wait += r.wait_seconds;
    data += r.data_seconds;
    targets += r.targets;
    sources += r.sources;
    items += r.items;
  }
  auto steps = static_cast<double>(records.size());
  auto rate = [&](int64_t count) {
    return with_commas(std::llround(static_cast<double>(count) / total));
  };
  std::vector<std::string> peaks;
  for (int64_t bytes : peak_bytes) peaks.push_back(short_bytes(static_cast<double>(bytes)));
  std::string out;
  out += fmt::format("Steps measured:         {} (from step {})\n", records.size(),
                     records.front().step);
  out += fmt::format("Avg time per step:      {:.4f} s (median {:.4f}, 95 % within {:.4f})\n",
                     total / steps, median(seconds), quantile(seconds, 0.95));
  out += fmt::format("  for other ranks:      {:.4f} s\n  for data:             {:.4f} s\n",
                     wait / steps, data / steps);
  out += fmt::format("Avg objects per second: {}\n", rate(sources + targets));
  out += fmt::format("Avg targets per second: {} {}\n", rate(targets), unit);
  out += fmt::format("Avg items per second:   {}\n", rate(items));
  out += fmt::format("Peak memory by rank:    {}\n", join(peaks, ", "));
  return out;
}

}  // namespace lockstep
