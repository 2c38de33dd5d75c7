// Serves the key-value store through which the ranks of one attempt find each other. Only who knows
// the attempt's secret is heard (dist/rank/meeting.h); whoever else connects is closed after five
// seconds, or when too many others came after it.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/descriptor.h"
#include "dist/rank/meeting.h"
#include "dist/store/store_wire.h"

namespace lockstep {

class StoreServer {
 public:
  // Serves on a thread of its own. Takes over a listening socket, and closes it at the end.
  // `expected`: clients that may come at once, beside which there is room for 64 strangers.
  StoreServer(int listener, const Token& secret, int expected = 0);
  ~StoreServer();  // clients that wait learn that it is gone
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  struct Client {
    Descriptor socket;
    Token nonce;              // that was sent to it
    Clock::time_point since;  // when it came
    bool known = false;
    std::string in, out;
    // A request that waits: its keys before `seen` are there.
    std::optional<StoreFrame> waiting;
    std::size_t seen = 0;
    Clock::time_point until;
  };

  void serve();
  void let_in();
  // These close the client's socket when it is to go.
  void read(Client& client);
  void prove(Client& client);
  void take_requests(Client& client);
  void write(Client& client);
  void answer_all_waiting();

  StoreFrame answer(StoreFrame& request);
  // Answers a request that waits, if its keys are there or its time is over; else returns false.
  bool answer_waiting(Client& client);
  int milliseconds_to_next_deadline() const;

  Descriptor listener_, wake_;
  const Token secret_;
  const std::ptrdiff_t most_strangers_;
  std::atomic<bool> stopping_ = false;
  std::unordered_map<std::string, std::string> values_;
  bool changed_ = false;  // by a request; those that wait have not looked since
  std::list<Client> clients_;
  std::thread thread_;
};

}  // namespace lockstep
