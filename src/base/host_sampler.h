// Samples this process and, on one rank of each machine, the machine once a second on a thread of
// its own: neither the training loop nor the heartbeat waits for files of /proc or for a driver.
#pragma once

#include <chrono>
#include <memory>

#include "base/host_usage.h"

namespace lockstep {

struct HostSample {
  HostFigures process;     // samples = 0: none was taken yet; memory and cores are known at once
  MachineFigures machine;  // samples = 0: none, or not asked for
};

class HostSampler {
 public:
  // The first sample comes after a tenth of `every`, so that there are figures soon.
  explicit HostSampler(HostUsageOptions options,
                       std::chrono::milliseconds every = std::chrono::seconds{1});
  // Returns within two seconds also when a driver does not: its thread is then left alone.
  ~HostSampler();
  HostSampler(const HostSampler&) = delete;
  HostSampler& operator=(const HostSampler&) = delete;

  HostSample newest() const;  // never waits for a sample

 private:
  struct State;  // shared with the thread, which may outlive this
  std::shared_ptr<State> state_;
};

}  // namespace lockstep
