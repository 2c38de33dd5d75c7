// Measures how fast this machine computes what training computes: matrix products, in the
// implementation that the steps use, and memory copies.
#pragma once

#include <string>

namespace lockstep {

struct MachineSpeed {
  std::string device = "cpu";
  int threads = 1;
  // Floating-point operations per second of products [512, 1024] x [1024, 1024], on one core and on
  // all; on a GPU, both hold the same figure.
  double fp32_one = 0, fp32_all = 0, bf16_one = 0, bf16_all = 0;
  double copied_bytes_per_second = 0;  // by all cores; a copied byte counts once
};

// Takes about `seconds` in all. The figures are the best of several short rounds, since other work
// on the machine makes rounds slower, never faster. Those of one core use this thread's CPU time,
// so that they hold on a busy machine too.
MachineSpeed measure_machine(double seconds);

}  // namespace lockstep
