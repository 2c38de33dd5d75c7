// Asks one HTTP question at a time on the event loop, without a thread: for servers of the
// machine's own network, whose addresses are numbers. Proxies of the environment are not used.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launch/job/spot_notice.h"
#include "launch/processes/event_loop.h"

namespace lockstep {

struct LoopQuestion {
  std::string url;
  std::vector<std::string> headers;
  bool put = false;  // an empty PUT instead of GET
};

class LoopRequest {
 public:
  // Told the answer, or why there is none.
  using Done = std::function<void(const HttpAnswer& answer, const std::string& failure)>;

  explicit LoopRequest(EventLoop& loop);
  ~LoopRequest();
  LoopRequest(const LoopRequest&) = delete;
  LoopRequest& operator=(const LoopRequest&) = delete;

  // Calls `done` once, from check_time() or the loop, never from here. REQUIRES !busy().
  void ask(const LoopQuestion& question, Done done);
  bool busy() const;
  void stop();  // forgets the question under way

  void check_time(Clock::time_point now);
  std::optional<Clock::time_point> next_deadline() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
