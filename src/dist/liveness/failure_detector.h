// What rank 0 knows of every rank from their heartbeats, and what follows from it: who is lost,
// who hangs and where, who issued another operation than the others. Plain data and rules, no
// sockets and no clock of its own.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/host_usage.h"
#include "base/machine_figures.h"
#include "dist/account/progress.h"

namespace lockstep {

struct RankIdentity {  // trivially copyable: it travels
  int32_t rank = -1;
  int32_t process = 0;
  char host[64] = {};     // as the launcher calls it, else the host's name
  char address[48] = {};  // numeric, of its connection
};

struct RankStatus {  // one beat; trivially copyable
  ProgressView progress;
  HostFigures usage;
  double clock_offset_seconds = 0;  // its clock minus rank 0's, estimated as NTP does
  double round_trip_seconds = 0;    // of the beat that gave the estimate; 0: none yet
};

enum class Presence : uint32_t { kAbsent, kHere, kDone, kClosed };

struct RankSeen {
  using Time = std::chrono::steady_clock::time_point;
  RankIdentity identity;
  RankStatus status;
  Presence presence = Presence::kAbsent;  // kClosed: its connection ended without farewell
  Time seen{};                            // its newest beat
  Time closed{};
  std::vector<OperationRecord> operations;  // its newest ones
  std::string trouble;                      // an operation failed there, for a reason elsewhere
  Time trouble_since{};
  std::string failure;  // it ends for a reason of its own, which this says
  Time failure_since{};
  MachineFigures machine;  // its newest, known on rank 0; samples = 0: another rank has them

  std::string name() const;   // "rank 2 on node1 (10.0.0.2)"
  std::string place() const;  // "step 1,234, backward; started NAME (operation 567)"
};

// Final: of several failures the first one counts, all others follow from it.
struct RankVerdict {
  std::vector<int> ranks;  // at fault; empty: all alike
  std::string headline;    // "lost rank 2 on node1 (10.0.0.2): no sign of life for 5.1 s"
  std::string detail;      // where it was last seen, and a table of all ranks
  std::string advice;
};

struct DetectorOptions {
  double lost_seconds = 5;    // of silence; 0: silence is no reason
  double stall_seconds = 15;  // that others wait for a rank before it is named; 0: never
  double beat_seconds = 0.5;
};

// What all say about all ranks, for people: one line a rank.
std::string rank_table(const std::vector<RankSeen>& ranks, RankSeen::Time now);
// Rank 0 itself is lost to another rank, whose newest knowledge `ranks` is.
RankVerdict leader_lost(const std::vector<RankSeen>& ranks, bool closed, RankSeen::Time now);

class FailureDetector {
 public:
  using Time = RankSeen::Time;
  // `mine`: the operations of rank 0, which those of the others are compared with.
  FailureDetector(const DetectorOptions& options, const RankProgress& mine)
      : options_(options), mine_(mine) {}

  // Call several times a second. `ranks` by rank; their times are moved on when this process itself
  // stood still, as a judge who slept has seen nothing.
  std::optional<RankVerdict> judge(std::vector<RankSeen>& ranks, Time now);

  // A rank that the others have waited for longer than it takes usually; once, and once more each
  // time that the wait has doubled.
  std::optional<std::string> warning(const std::vector<RankSeen>& ranks, Time now);

 private:
  struct Stall {
    int rank = -1;
    uint64_t operation = 0;  // that the others wait in
    std::string operation_text;
    Phase phase = Phase::kStarting;  // of the rank
    double seconds = 0;
    std::vector<int> waiting;
  };

  void forgive_own_sleep(std::vector<RankSeen>& ranks, Time now);
  std::optional<RankVerdict> lost(const std::vector<RankSeen>& ranks, Time now) const;
  std::optional<RankVerdict> failed(const std::vector<RankSeen>& ranks, Time now) const;
  std::optional<RankVerdict> desynchronised(const std::vector<RankSeen>& ranks, Time now);
  std::optional<RankVerdict> in_trouble(const std::vector<RankSeen>& ranks, Time now) const;
  std::optional<Stall> find_stall(const std::vector<RankSeen>& ranks, Time now) const;

  DetectorOptions options_;
  const RankProgress& mine_;
  std::optional<Time> last_;               // call of judge
  std::optional<Time> differing_;          // since when operations are known to differ
  std::optional<Stall> stall_;             // the present one
  double next_warning_seconds_ = 0;        // of it
  std::array<double, kPhases> longest_{};  // stall that ended well, by the phase of its culprit
};

}  // namespace lockstep
