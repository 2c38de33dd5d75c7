#include "base/cpu_energy.h"

#include <algorithm>
#include <filesystem>

#include "base/proc_files.h"

namespace lockstep {

CpuEnergy::CpuEnergy(const std::string& root) {
  namespace fs = std::filesystem;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root + "/sys/class/powercap", none)) {
    const std::string zone = entry.path().filename().string();
    // intel-rapl:0 is a package, intel-rapl:0:1 is a part of that package.
    if (!zone.starts_with("intel-rapl:") || std::count(zone.begin(), zone.end(), ':') != 1) {
      continue;
    }
    if (!small_file(entry.path().string() + "/name").starts_with("package")) continue;
    const std::string path = entry.path().string() + "/energy_uj";
    const std::string now = small_file(path);
    if (now.empty()) continue;
    packages_.push_back({path, parse_number(now),
                         parse_number(small_file(entry.path().string() + "/max_energy_range_uj"))});
  }
}

double CpuEnergy::joules() {
  for (Package& package : packages_) {
    const std::string text = small_file(package.path);
    if (text.empty()) continue;
    const uint64_t now = parse_number(text);
    const uint64_t passed =
        now >= package.last
            ? now - package.last
            : now + (package.range > package.last ? package.range - package.last : 0);
    package.last = now;
    joules_ += static_cast<double>(passed) * 1e-6;
  }
  return joules_;
}

}  // namespace lockstep
