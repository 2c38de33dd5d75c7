// Declares the clock of a device that works behind the thread of its rank, as a GPU does: the
// thread hands work over and goes on, so its own clock does not tell when the work is done.
#pragma once

#include <memory>

namespace lockstep {

class DeviceClock {
 public:
  using Mark = std::shared_ptr<const void>;

  virtual ~DeviceClock() = default;
  // Marks the end of the work that this thread has handed over so far, and returns at once.
  virtual Mark mark() = 0;
  // Returns whether the device has come to the mark.
  virtual bool passed(const Mark& mark) const = 0;
  // Returns the device's seconds from one mark to a later one; waits until it has come to both.
  virtual double seconds_between(const Mark& first, const Mark& second) const = 0;
};

}  // namespace lockstep
