// Measures the energy that the processor packages of this machine use. It reads the counters of
// Intel's RAPL, which Linux also provides for AMD processors: /sys/class/powercap/intel-rapl:N
// (kernel documentation power/powercap/powercap.rst). Since Linux 5.10 only root may read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

class CpuEnergy {
 public:
  // `root` is prepended to /sys, for tests.
  explicit CpuEnergy(const std::string& root = "");
  bool is_known() const { return !packages_.empty(); }
  // Returns the energy that all packages have used since the constructor ran. Call it before a
  // counter can wrap, which takes some minutes under full load. A package that has become
  // unreadable adds nothing.
  double joules();

 private:
  struct Package {
    std::string path;
    uint64_t last = 0, range = 0;  // microjoules; range: the value at which the counter wraps
  };
  std::vector<Package> packages_;
  double joules_ = 0;
};

}  // namespace lockstep
