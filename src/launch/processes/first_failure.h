// Tells which of several ranks failed first, and what a person should know about it. When one rank
// dies, the others lose their peer and exit with kExitMachine a moment later, sometimes before the
// kernel has reported the first: so the time of an exit alone does not tell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/processes/event_loop.h"

namespace lockstep {

struct RankEnd {
  int rank = 0;
  int status = 0;             // as waitpid gives it
  Clock::time_point time;     // when the launcher learnt of it
  bool told_to_stop = false;  // SIGTERM had been sent to it before
};

// After an unexpected failure with kExitMachine, ends within this time are preferred as its cause,
// those by a signal first: losing a peer is a consequence.
inline constexpr std::chrono::seconds kCascade{2};

// Returns nothing when no rank failed by itself. `ends` are in the order in which they became
// known.
std::optional<RankEnd> first_failure(const std::vector<RankEnd>& ends);

// Returns whether another rank may still turn out to be the cause of this end: it lost a peer.
bool may_be_consequence(const RankEnd& end);

// Returns the launcher's exit code: the rank's own, or kExitMachine for a rank that a signal
// killed.
int exit_code_for(const RankEnd& end);

std::string signal_name(int signal);  // "SIGKILL"
// Returns "exited with code 3 (an input file is missing, damaged or unusable)" or "was killed by
// SIGSEGV".

std::string describe_end(const RankEnd& end);
// Returns what a person can do about it; empty when the rank's own output says it all.
std::string advice_for(const RankEnd& end);

}  // namespace lockstep
