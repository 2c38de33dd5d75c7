// Reads RUN/times (formats/step_times.h) as figures: where the time of every rank went over the
// whole run, over its course, and in single steps. Of repeated steps, those of the later attempt
// count.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "formats/step_times.h"
#include "report/run/analysis_steps.h"
#include "report/run/run_facts.h"

namespace lockstep {

// Seconds and bytes, of one step or summed; data + ... + other is the duration of the steps.
struct RankPhases {
  int64_t steps = 0;
  double data = 0, forward = 0, backward = 0;
  double exchange = 0;  // exposed communication: waiting for the network
  double peers = 0;     // waiting for later ranks
  double optimizer = 0, other = 0;
  double hidden = 0;  // part of forward and backward that overlapped an exchange
  double sent = 0, received = 0;

  double step() const { return data + forward + backward + exchange + peers + optimizer + other; }
  double wait() const { return exchange + peers; }
  double computing() const { return forward + backward + optimizer; }
  double working() const { return data + computing(); }
  void add(const RankTimes& times);  // adds nothing for a rank that is unknown in that step
  void add(const RankPhases& phases);
  RankPhases mean() const;  // per step; all zero without steps
};

struct TimesBin {
  int64_t first = 0, last = 0;    // steps
  std::vector<RankPhases> ranks;  // summed
};

struct RunTimes {
  std::vector<std::pair<int64_t, int64_t>> covered;  // first and last step, ascending
  std::vector<RankPhases> total;                     // by rank, over all steps that count
  std::vector<RankPhases> steady;                    // means without the first steps of an attempt
  std::vector<RankPhases> usual;                     // medians of at most 4,096 of those steps
  std::vector<TimesBin> bins;                        // at most 200, with equally many steps each
  std::map<int, std::string> hosts;                  // by rank, from live.json

  std::size_t ranks() const { return total.size(); }
  int64_t steps() const { return total.empty() ? 0 : total.front().steps; }  // that count
  bool covers(int64_t step) const;
  std::string rank_name(int rank) const;  // "rank 1 on node2", "rank 1"
};

// Returns nothing for a run without RUN/times or whose files have no step yet. Throws DataError for
// damaged files.
std::optional<RunTimes> read_run_times(const RunFacts& facts);

// Calls `f` for every step that counts, in order.
void for_each_counted_step(const fs::path& folder, const std::function<void(const StepTimes&)>& f);

// A rank whose own work takes at least 15 % longer than the median of the others'.
struct SlowRank {
  int rank = 0;
  double factor = 1;            // its work over that median
  int64_t first = 0, last = 0;  // the steps in which it was slow
  bool whole_run = false;
  std::string because;  // the phase in which it is slowest: "backward"
};
// Judges by the means of the run, else by a stretch of a tenth of its steps (at least 50). Returns
// nothing for one rank, or fewer than 20 steps.
std::optional<SlowRank> find_slow_rank(const RunTimes& times);
std::string describe(const SlowRank& slow, const RunTimes& times);

// Per step, as means over ranks, in seconds. Time that all ranks wait counts as exchange, though a
// rank that is always last hides some of it.
struct ExchangeFigures {
  double step = 0, exposed = 0, hidden = 0, peers = 0;
  double sent = 0, received = 0;  // bytes per rank
};
ExchangeFigures exchange_figures(const RunTimes& times);

// Finds what made a step slow by comparing every rank's phases in it with the usual ones: "rank 1
// on b took longer in backward". Returns nothing for a step that was not slow.
std::optional<std::string> cause_by_phases(const StepTimes& step, const RunTimes& times);
// Replaces the causes that were found from rank 0's figures alone by these.
void refine_causes(const fs::path& folder, const RunTimes& times, Outliers& outliers);

}  // namespace lockstep
