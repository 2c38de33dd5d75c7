// Asks the rendezvous store of rank 0 (store_server.h). Thread-safe: one request at a time.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "base/descriptor.h"
#include "dist/rank/meeting.h"
#include "dist/store/store_wire.h"

namespace lockstep {

class StoreClient {
 public:
  // Connects to a host, by name or number; tries again while nothing listens there. Throws
  // MachineError when the time is over, or at once when what listens there does not know the
  // secret.
  StoreClient(const std::string& host, int port, const Token& secret,
              std::chrono::milliseconds timeout);

  // Returns the answer. Its `done` is false when a wait took longer than the frame's
  // wait_milliseconds. Throws MachineError when the store is gone, or silent for longer than that
  // and `patience`; then every later request fails too.
  StoreFrame ask(const StoreFrame& request, std::chrono::milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;

  void connect(Clock::time_point end);
  void prove(const Token& secret, Clock::time_point end);
  void send(std::string_view bytes, Clock::time_point end);
  void receive_until(std::size_t bytes, Clock::time_point end);  // at least so many are in in_
  void wait_for(short event, Clock::time_point end);
  [[noreturn]] void fail(const std::string& cause);

  const std::string host_;
  const int port_;
  std::mutex mutex_;
  Descriptor socket_;
  std::string in_;
};

}  // namespace lockstep
