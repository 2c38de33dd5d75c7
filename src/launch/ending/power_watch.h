// Switches this machine off when its job is over, or when no launcher was heard for long: a lost
// launcher must not leave machines that go on costing. The agent notes in a file when it last heard
// its launcher; a small process, which outlives the agent, looks at that file and at nothing else.
// A new agent with an order of its own takes the file over, one without removes it, and while any
// agent of this machine lives nothing is switched off (docs/launch.md#switching-the-hosts-off).
//
//   ~/.lockstep/power_off/MACHINE.json   command, when the launcher was heard, what must be copied
//   ~/.lockstep/power_off/MACHINE.log    what the process decided, and why
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "launch/processes/event_loop.h"

namespace lockstep {

// What a launcher asks for. Without a command the machine is never switched off.
struct PowerOrder {
  std::string command;       // for /bin/sh; "default": systemctl poweroff, by sudo unless root
  double after_seconds = 0;  // without a word of the launcher
  std::string run_folder;    // "~/...": below the home; empty: nothing to be copied
  bool leads = false;        // rank 0 is here, so mirror.json is
  bool mirrored = false;     // the run has a mirror
  bool anyway = false;       // whatever only this machine has
};

// What is known at the time of a decision, and the decision: pure, for tests.
struct PowerFacts {
  double now = 0;            // Unix seconds
  double heard = 0;          // when the launcher was heard last
  double due = 0;            // when the launcher said to; 0: it did not
  bool agents_live = false;  // of any job of this machine
  bool copied = true;        // nothing here is the only copy, as far as this machine knows
};
enum class PowerDecision { kWait, kOff, kRefuse };
PowerDecision decide_power(const PowerOrder& order, const PowerFacts& facts);

class PowerWatch {
 public:
  // Checks that this user may switch off, notes the order and starts the process where none runs.
  // Throws ConfigError when the user may not. REQUIRES that no other thread runs (it forks).
  void arm(const PowerOrder& order);
  // Takes back what an earlier agent noted: this machine is in use by somebody else's order.
  static void clear();
  void heard();                                  // call often; writes rarely
  void stand_down();                             // the launcher ends and this machine stays on
  void off_in(std::chrono::milliseconds delay);  // the launcher's order

 private:
  void write();
  PowerOrder order_;
  double due_ = 0;
  Clock::time_point next_write_;
  bool armed_ = false;
};

}  // namespace lockstep
