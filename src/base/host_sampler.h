// Samples this process once a second on a thread of its own and, on one rank of each machine, the
// machine too. So neither the training loop nor the heartbeat waits for files of /proc or for a
// driver.
#pragma once

#include <chrono>
#include <memory>

#include "base/host_usage.h"

namespace lockstep {

struct HostSample {
  HostFigures process;     // samples = 0: no sample yet; memory and cores are set from the start
  MachineFigures machine;  // samples = 0: no sample yet, or not requested
};

class HostSampler {
 public:
  // Takes the first sample after a tenth of `every`, so that figures are available early.
  explicit HostSampler(HostUsageOptions options,
                       std::chrono::milliseconds every = std::chrono::seconds{1});
  // Returns within two seconds even when a driver hangs: the thread is then detached.
  ~HostSampler();
  HostSampler(const HostSampler&) = delete;
  HostSampler& operator=(const HostSampler&) = delete;

  HostSample newest() const;  // returns at once, without taking a sample

 private:
  struct State;  // shared with the thread, which may outlive this
  std::shared_ptr<State> state_;
};

}  // namespace lockstep
