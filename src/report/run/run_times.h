// RUN/times (formats/step_times.h) as figures: where the time of every rank went over the run, over
// its course, and in single steps. Of steps that a later attempt took again its own count.
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

// Seconds and bytes, of one step or added up; data + ... + other is the time of the steps.
struct RankPhases {
  int64_t steps = 0;
  double data = 0, forward = 0, backward = 0;
  double exchange = 0;  // exposed communication: waiting that is the network's
  double peers = 0;     // waiting for ranks that came later
  double optimizer = 0, other = 0;
  double hidden = 0;  // of forward and backward, while an exchange was under way
  double sent = 0, received = 0;

  double step() const { return data + forward + backward + exchange + peers + optimizer + other; }
  double wait() const { return exchange + peers; }
  double computing() const { return forward + backward + optimizer; }
  double working() const { return data + computing(); }
  void add(const RankTimes& times);  // nothing for a rank that is not known in that step
  void add(const RankPhases& phases);
  RankPhases mean() const;  // of a step; all zero without steps
};

struct TimesBin {
  int64_t first = 0, last = 0;    // steps
  std::vector<RankPhases> ranks;  // added up
};

struct RunTimes {
  std::vector<std::pair<int64_t, int64_t>> covered;  // first and last step, ascending
  std::vector<RankPhases> total;                     // by rank: all steps that count
  std::vector<RankPhases> steady;                    // means without the first steps of an attempt
  std::vector<RankPhases> usual;                     // medians of 4,096 of those steps at most
  std::vector<TimesBin> bins;                        // 200 at most, equally many steps in each
  std::map<int, std::string> hosts;                  // by rank, as live.json knows them

  std::size_t ranks() const { return total.size(); }
  int64_t steps() const { return total.empty() ? 0 : total.front().steps; }  // that count
  bool covers(int64_t step) const;
  std::string rank_name(int rank) const;  // "rank 1 on node2", "rank 1"
};

// Nothing for a run without RUN/times or one whose files have no step yet. DataError for damaged
// files.
std::optional<RunTimes> read_run_times(const RunFacts& facts);

// Calls `f` for every step that counts, in order.
void for_each_counted_step(const fs::path& folder, const std::function<void(const StepTimes&)>& f);

// A rank whose own work takes 15 % longer than the median of the others'.
struct SlowRank {
  int rank = 0;
  double factor = 1;            // its work over that median
  int64_t first = 0, last = 0;  // steps in which it was
  bool whole_run = false;
  std::string because;  // "backward": the phase that it is slowest in
};
// By the means of the run, else by a stretch of a tenth of its steps (50 at least). Nothing for
// one rank, or less than 20 steps.
std::optional<SlowRank> find_slow_rank(const RunTimes& times);
std::string describe(const SlowRank& slow, const RunTimes& times);

// Of a step, as means over ranks; seconds. What all ranks wait is the exchange's, though a rank
// that is always last hides some of it.
struct ExchangeFigures {
  double step = 0, exposed = 0, hidden = 0, peers = 0;
  double sent = 0, received = 0;  // bytes of a rank
};
ExchangeFigures exchange_figures(const RunTimes& times);

// Names what made a step slow by comparing every rank's phases in it with the usual ones: "rank 1
// on b took longer in backward". Nothing for one that was not slow.
std::optional<std::string> cause_by_phases(const StepTimes& step, const RunTimes& times);
// Puts these causes in place of those that rank 0's figures gave alone.
void refine_causes(const fs::path& folder, const RunTimes& times, Outliers& outliers);

}  // namespace lockstep
