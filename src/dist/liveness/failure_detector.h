// The failure detector decides, from the heartbeats that rank 0 receives, who is lost, who hangs
// and where, and who issued another operation than the others. It is plain data and rules, with no
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

struct RankIdentity {  // trivially copyable, because it is sent
  int32_t rank = -1;
  int32_t process = 0;
  char host[64] = {};     // as the launcher calls it, else the host name
  char address[48] = {};  // numeric, of its connection
};

struct RankStatus {  // content of one heartbeat; trivially copyable
  ProgressView progress;
  HostFigures usage;
  double clock_offset_seconds = 0;  // its clock minus rank 0's, estimated as in NTP
  double round_trip_seconds = 0;    // of the heartbeat that gave the estimate; 0: none yet
};

enum class Presence : uint32_t { kAbsent, kHere, kDone, kClosed };

struct RankSeen {
  using Time = std::chrono::steady_clock::time_point;
  RankIdentity identity;
  RankStatus status;
  Presence presence = Presence::kAbsent;  // kClosed: its connection ended without a farewell
  Time seen{};                            // when its newest heartbeat came
  Time closed{};
  std::vector<OperationRecord> operations;  // its newest ones
  std::string trouble;                      // of a failed operation there, due to another rank
  Time trouble_since{};
  std::string failure;  // why it ends, when the reason is its own
  Time failure_since{};
  MachineFigures machine;  // newest, known on rank 0; samples = 0: another rank sends them
  bool stop_here = false;  // on rank 0: a signal reached it
  std::optional<int64_t> stop_first;  // on rank 0: its answer (stop_news.h)

  std::string name() const;   // "rank 2 on node1 (10.0.0.2)"
  std::string place() const;  // "step 1,234, backward; started NAME (operation 567)"
};

// A verdict is final: of several failures the first one counts, as all others follow from it.
struct RankVerdict {
  std::vector<int> ranks;  // at fault; empty: no rank in particular
  std::string headline;    // "lost rank 2 on node1 (10.0.0.2): no sign of life for 5.1 s"
  std::string detail;      // where the ranks were last seen, and a table of all ranks
  std::string advice;
};

struct DetectorOptions {
  double lost_seconds = 5;    // longest silence; 0: silence is no reason
  double stall_seconds = 15;  // how long others wait for a rank before it is named; 0: never
  double beat_seconds = 0.5;
};

// Returns a table for people of what is known of all ranks, one line per rank.
std::string rank_table(const std::vector<RankSeen>& ranks, RankSeen::Time now);
// The verdict of another rank that has lost rank 0 itself. `ranks`: the newest that rank knows.
RankVerdict leader_lost(const std::vector<RankSeen>& ranks, bool closed, RankSeen::Time now);

class FailureDetector {
 public:
  using Time = RankSeen::Time;
  // `mine`: the operations of rank 0, with which those of the other ranks are compared.
  FailureDetector(const DetectorOptions& options, const RankProgress& mine)
      : options_(options), mine_(mine) {}

  // Call several times a second. `ranks` is indexed by rank; when this process itself was
  // suspended, their times are moved forward, because nothing was received meanwhile.
  std::optional<RankVerdict> judge(std::vector<RankSeen>& ranks, Time now);

  // Describes a rank that the others have waited for longer than usual: once, and again each time
  // the wait has doubled.
  std::optional<std::string> warning(const std::vector<RankSeen>& ranks, Time now);

 private:
  struct Stall {
    int rank = -1;
    uint64_t operation = 0;  // the operation in which the others wait
    std::string operation_text;
    Phase phase = Phase::kStarting;  // of the rank waited for
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
  std::optional<Time> last_;               // last call of judge()
  std::optional<Time> differing_;          // since when operations are known to differ
  std::optional<Stall> stall_;             // the current one
  double next_warning_seconds_ = 0;        // when to warn of it again
  std::array<double, kPhases> longest_{};  // longest harmless stall, by the phase of its culprit
};

}  // namespace lockstep
