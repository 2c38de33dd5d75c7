// Divides the steps of a run among its ranks: as configured, as their memory asks for, and with
// batch.shares = "speed" as their speeds turn out. Every decision is made by all ranks alike from
// the times that each step's message carries, then written into the run folder and told to all as
// rank 0 made it, and holds from a batch on that no rank has begun to prepare.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dist/collectives/world.h"
#include "tasks/task.h"
#include "train/config/run_config.h"
#include "train/folder/run_folder.h"
#include "train/folder/run_position.h"
#include "train/parts/memory_fit.h"
#include "train/parts/share_policy.h"
#include "train/parts/share_timeline.h"

namespace lockstep {

inline constexpr int64_t kStepsPrefetched = 4;  // at most, beside the one that is made

class StepSharing {
 public:
  struct Place {              // of the decisions
    const RunFolder& folder;  // of the run
    bool keeps = false;       // whether this rank writes there
    int holder = 0;           // the rank whose decisions hold, where there are some
    bool records = true;      // false: a benchmark, which leaves nothing
  };
  // Fits micro-batches to memory where the configuration asks for it, and says how the steps of the
  // run are divided from `position` on: as an earlier process recorded, else as configured.
  // `ranks`: among which a step is split. The arguments must outlive this, except `position`.
  // Throws ConfigError for shares that leave a rank without work; what fit_to_memory() throws.
  // Collective.
  StepSharing(const RunConfig& config, World& world, GradientReducer& reducer, const Place& place,
              int64_t ranks);
  // Call it once, before the first step. Collective.
  void begin(const RunPosition& position);

  const ShareTimeline& timeline() const { return timeline_; }

  // Call it after a step that all ranks took, with the position after it and the times of the step
  // before it, by rank. Collective.
  void after_step(const RunPosition& position, const std::vector<RankTimes>& times_before);

  // Call it when ranks ran out of memory in the step that follows `position`: they get twice as
  // many micro-batches, from that step on. `items`: in the largest micro-batch of this rank, if it
  // is one of them, else 0. Throws MachineError where a rank cannot take a single item. Collective.
  void divide_more(const RunPosition& position, int64_t items);

 private:
  RankShares configured() const;
  int64_t micro_batches_for(const RankShares& shares, std::size_t rank) const;
  std::vector<double> least_parts(const RankShares& shares) const;
  void check_work(const RankShares& shares) const;
  void take_over(const RunPosition& position);
  BatchPlace after(BatchPlace place, int64_t batches) const;
  ShareDecision decide(ShareDecision decision);
  void record(const std::string& lines);

  const RunConfig& config_;
  Task& task_;
  World& world_;
  Place place_;
  int64_t ranks_;
  bool follows_speed_ = false;
  std::vector<std::string> names_;  // "rank 2 on c", by rank
  std::optional<MemoryFit> fit_;
  double items_ = 0;  // of a step
  ShareTimeline timeline_;
  std::string book_;  // what shares.jsonl holds
  SharePolicy policy_{ShareRules{}};
  std::optional<BatchPlace> before_;  // the batch of the step before
};

}  // namespace lockstep
