// The energy that the processor packages of this machine take, by the counters of Intel's RAPL,
// which Linux has for AMD's processors as well: /sys/class/powercap/intel-rapl:N (kernel
// documentation power/powercap/powercap.rst). Since Linux 5.10 root alone may read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

class CpuEnergy {
 public:
  // `root`: in front of /sys, for tests.
  explicit CpuEnergy(const std::string& root = "");
  bool is_known() const { return !packages_.empty(); }
  // Of all packages since the constructor. Call more often than the counters wrap: some minutes
  // under full load. A package that cannot be read any more adds nothing.
  double joules();

 private:
  struct Package {
    std::string path;
    uint64_t last = 0, range = 0;  // microjoules; range: where the counter begins anew
  };
  std::vector<Package> packages_;
  double joules_ = 0;
};

}  // namespace lockstep
