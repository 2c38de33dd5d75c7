// Which of several ranks failed first, and what to tell a person about it. When one rank dies, the
// others lose their peer and exit with kExitMachine a moment later, sometimes before the kernel has
// reported the first: so the time of an exit alone does not tell.
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
  bool told_to_stop = false;  // SIGTERM had been sent before
};

// The end that was no success and not our doing. Later ends within this time are preferred to one
// with kExitMachine, those by a signal first: losing a peer is a consequence.
inline constexpr std::chrono::seconds kCascade{2};

// Nothing when no rank failed by itself. `ends` are in the order in which they became known.
std::optional<RankEnd> first_failure(const std::vector<RankEnd>& ends);

// Whether another rank may yet turn out to be the cause of this end: it lost a peer.
bool may_be_consequence(const RankEnd& end);

// What the launcher exits with: the rank's own code, kExitMachine for a rank that a signal killed.
int exit_code_for(const RankEnd& end);

std::string signal_name(int signal);  // "SIGKILL"
// "exited with code 3 (an input file is missing or damaged)", "was killed by SIGSEGV".
std::string describe_end(const RankEnd& end);
// What a person can do about it; empty when the rank's own words are all there is.
std::string advice_for(const RankEnd& end);

}  // namespace lockstep
