// Makes the clock of a device out of events on the stream of the calling thread (c10::Event).
#pragma once

#include <c10/core/Device.h>

#include "dist/account/device_clock.h"

namespace lockstep {

class EventClock final : public DeviceClock {
 public:
  explicit EventClock(c10::Device device) : device_(device) {}
  Mark mark() override;
  bool passed(const Mark& mark) const override;
  double seconds_between(const Mark& first, const Mark& second) const override;

 private:
  c10::Device device_;
};

}  // namespace lockstep
