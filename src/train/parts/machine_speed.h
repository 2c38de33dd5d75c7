// How fast this machine computes what training computes: matrix products on the path that the
// steps take, and memory.
#pragma once

#include <string>

namespace lockstep {

struct MachineSpeed {
  std::string device = "cpu";
  int threads = 1;
  // Floating-point operations a second of products [512, 1024] x [1024, 1024], one core and all; on
  // a GPU one figure counts for both.
  double fp32_one = 0, fp32_all = 0, bf16_one = 0, bf16_all = 0;
  double copied_bytes_per_second = 0;  // by all cores: read and written ones count once
};

// Takes about `seconds` in all. The figures are the best of several short rounds: other work on the
// machine makes rounds slower, never faster. Those of one core are by the time that it gave to this
// process, so that they hold on a busy machine too.
MachineSpeed measure_machine(double seconds);

}  // namespace lockstep
