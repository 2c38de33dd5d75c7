// Signals as something to read instead of handlers: they are blocked for the calling thread and
// come out of a descriptor in the order of delivery. Those that were ignored when we were started
// (nohup) stay so.
#pragma once

#include <signal.h>

#include <vector>

#include "launch/processes/descriptor.h"

namespace lockstep {

class SignalQueue {
 public:
  explicit SignalQueue(const std::vector<int>& signals);  // throws MachineError
  ~SignalQueue();                                         // delivers nothing that is still queued
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  int descriptor() const { return descriptor_.get(); }  // readable when one is there
  int next();                                           // 0 when there is none
 private:
  Descriptor descriptor_;
  sigset_t before_;
};

}  // namespace lockstep
