// A switch in user space: passes Ethernet frames between TAP interfaces with the delay, rate, loss
// and cuts of a simulated network. It has one thread, which sleeps until a frame arrives or is due.
//
// A frame on its way from one port to another
// 1. waits for the sender's line, whose rate delays its last bit;
// 2. is lost, or travels for delay +- jitter; frames of a path never overtake each other;
//   3. waits for the receiver's line.
// A line queues frames up to a bound and drops the rest, as the buffer of a switch does; a sender
// is never stopped. Frames up to 64 kB pass whole and take the time of the packets that a wire
// would carry instead (netlab/frame.h); on paths with loss every packet passes by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace lockstep {

struct SwitchPath {
  double delay_ms = 0;   // one way
  double jitter_ms = 0;  // uniform in +- this much; no delay falls below 0
  double loss = 0;       // probability for each packet
  bool cut = false;
  bool operator==(const SwitchPath&) const = default;
};

struct PortCounts {
  uint64_t frames_in = 0, frames_out = 0;   // in: from the host
  uint64_t bytes_in = 0, bytes_out = 0;     // on the wire
  uint64_t cut = 0, lost = 0, overrun = 0;  // frames of this host that did not arrive, and why
};

struct SwitchOptions {
  int ports = 2;
  double queue_ms = 50;  // of a line with a rate limit; 16 packets are always held
  uint64_t seed = 1;
  std::size_t most_bytes = std::size_t{512} << 20;  // under way at a time; more are dropped
};

class Switch {
 public:
  explicit Switch(const SwitchOptions& options);  // throws MachineError
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  // Port p serves the Ethernet addresses that end in p + 1 (two bytes). Replaces an attached
  // interface.
  void attach(int port, Descriptor tap);
  void detach(int port);  // closes the TAP: the interface is gone
  SwitchPath path(int from, int to);
  void set_path(int from, int to, const SwitchPath& path);
  double rate_mbit(int port);
  void set_rate(int port, double mbit);  // 0: no limit
  PortCounts counts(int port);

 private:
  class Engine;
  void on_thread(const std::function<void()>& work);  // runs `work` there and waits for it
  std::unique_ptr<Engine> engine_;
};

// Returns the longest frame that keeps a line of this rate busy for at most about a millisecond.
int largest_frame_at(double rate_mbit);

}  // namespace lockstep
