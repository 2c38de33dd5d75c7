// Asks what machines there are now while a job lacks some, by a program of its own, so that the
// launcher never waits for a cloud or for what a new machine must be sent
// (docs/launch.md#machines-that-come-later).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/hosts/host_list.h"
#include "launch/processes/descriptor.h"
#include "launch/processes/event_loop.h"

namespace lockstep {

struct HostFinderOptions {
  // The program and its words; empty: nobody is asked. It gets hosts_text() of the hosts that are
  // known on standard input, makes those that it adds ready, and prints them in the same form.
  std::vector<std::string> words;
  std::chrono::milliseconds every{10000};  // between two questions
};

// Hosts as text for the program and from it: their names, ssh names and addresses.
std::string hosts_text(const std::vector<Host>& hosts);
// Throws DataError for what hosts_text() did not write.
std::vector<Host> hosts_of_text(const std::string& text);

// Returns those of `listed` that `known` does not have: neither their ssh name nor their address.
std::vector<Host> unknown_hosts(const std::vector<Host>& listed, const std::vector<Host>& known);

struct HostReplacement {
  int seat = 0;  // whose place it takes
  Host host;
};
// Chooses whose places new machines take: those of the same name first, then the first ones. A name
// that another seat or an earlier new machine has is taken once.
std::vector<HostReplacement> match_seats(const std::vector<Host>& seats,
                                         const std::vector<int>& missing,
                                         const std::vector<Host>& found);

class HostFinder {
 public:
  using Say = std::function<void(const std::string& line)>;
  HostFinder(HostFinderOptions options, Say say)
      : options_(std::move(options)), say_(std::move(say)) {}
  ~HostFinder();  // ends the program
  HostFinder(const HostFinder&) = delete;
  HostFinder& operator=(const HostFinder&) = delete;

  bool is_on() const { return !options_.words.empty(); }
  // Asks if it is time, and nobody is being asked. `known`: all seats, as they are now.
  void ask(const std::vector<Host>& known, Clock::time_point now);
  // Call this after SIGCHLD. Returns the new hosts when the program has ended; what goes wrong is
  // said, once for the same reason.
  std::vector<Host> collect();
  // When to ask again; nothing while somebody is being asked.
  std::optional<Clock::time_point> next_deadline() const;

 private:
  void complain(const std::string& what);

  HostFinderOptions options_;
  Say say_;
  pid_t process_ = -1;
  Descriptor output_, errors_;
  Clock::time_point next_{};
  std::string complaint_;  // the last one
};

}  // namespace lockstep
