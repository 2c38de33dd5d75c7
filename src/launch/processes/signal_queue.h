// Makes signals readable from a descriptor instead of handled: they are blocked for the calling
// thread and read in the order of delivery. Signals that were ignored when this process started
// (nohup) stay ignored.
#pragma once

#include <signal.h>

#include <vector>

#include "launch/processes/descriptor.h"

namespace lockstep {

class SignalQueue {
 public:
  explicit SignalQueue(const std::vector<int>& signals);  // throws MachineError
  ~SignalQueue();                                         // drops what is still queued
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int descriptor() const { return descriptor_.get(); }  // readable when a signal is queued
  int next();                                           // 0 when there is none
 private:
  Descriptor descriptor_;
  sigset_t before_;
};

}  // namespace lockstep
