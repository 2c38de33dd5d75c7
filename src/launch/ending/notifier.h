// Tells others of a run (`launch --notify`) without ever waiting for them: each notice is a process
// of its own, one at a time for a target and so in order, which is killed when it takes too long.
// A target that cannot be told is a warning, never an error of the run.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/ending/notice.h"
#include "launch/processes/descriptor.h"
#include "launch/processes/event_loop.h"

namespace lockstep {

class Notifier {
 public:
  using Warn = std::function<void(const std::string& line)>;

  // `warn` shows a line to the user.
  Notifier(std::vector<NotifyTarget> targets, Warn warn);
  ~Notifier();  // ends what still runs
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Queues the notice for every target. REQUIRES that no other thread runs (it forks).
  void tell(const Notice& notice);
  void hurry();    // only the newest notice of each target is still sent, and what is on its way
  void collect();  // after SIGCHLD
  void check_time(Clock::time_point now);
  std::optional<Clock::time_point> next_deadline() const;
  bool idle() const;

 private:
  struct Target {
    NotifyTarget is;
    std::deque<Notice> waiting;
    pid_t process = -1;
    Descriptor said;  // what the process writes
    Clock::time_point until;
  };
  void next(Target& target);
  void end(Target& target, int status, bool in_time);

  std::vector<Target> targets_;
  Warn warn_;
};

// Posts what standard input says, {"url": ..., "body": ...} as the Notifier writes it: at most
// three tries of at most 10 s each, a server's "not now" (429, 5xx) and no answer are tried again.
// Throws MachineError, which names the host alone.
void post_notice();

}  // namespace lockstep
