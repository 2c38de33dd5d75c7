// Remembers from which batch on which shares hold: the decisions of a run, in its folder as
// shares.jsonl (docs/run-folder.md#shares), so that a resumed run divides its steps as the run did.
//
// Decisions are in the order in which they were made. One that begins at or before others replaces
// them: the run was resumed there, or divided anew.
#pragma once

#include <compare>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "data/steps/rank_shares.h"

namespace lockstep {

// Says which batch of the run: numbers count from 0.
struct BatchPlace {
  int64_t epoch = 0, step_in_epoch = 0;
  auto operator<=>(const BatchPlace&) const = default;
};

struct ShareDecision {
  BatchPlace from;                   // the first batch that is divided so
  int64_t step = 1;                  // of that batch, if none before it is skipped; counts from 1
  RankShares shares;                 // by rank
  int64_t accumulate = 0;            // batch.accumulate when it was made; 0: fitted to memory
  std::vector<double> seconds = {};  // by rank, for which it computed a step before; may be empty
  std::string why;
};

// One line of shares.jsonl, without its end.
std::string to_line(const ShareDecision& decision);
// Throws DataError, with `file` in its text, for a line that to_line() did not write.
ShareDecision decision_from_line(const std::string& line, const std::string& file);

// Thread-safe.
class ShareTimeline {
 public:
  explicit ShareTimeline(RankShares first);  // from the first batch of the run on
  // Takes over the decisions of an earlier process, in their order; later ones of another number
  // of ranks than the one at `now` end it. Returns false, with nothing taken over, where the one at
  // `now` is of another number of ranks than `ranks` or there is none.
  bool take_over(const std::vector<ShareDecision>& decisions, BatchPlace now, int64_t ranks);

  void add(ShareDecision decision);
  RankShares at(BatchPlace place) const;
  // Whether a decision lies after `place`.
  bool has_after(BatchPlace place) const;
  // Returns the decisions that hold, from that at `place` on.
  std::vector<ShareDecision> from(BatchPlace place) const;

 private:
  void add_unlocked(ShareDecision decision);
  std::size_t index_at(BatchPlace place) const;

  mutable std::mutex mutex_;              // the prefetch thread asks too
  std::vector<ShareDecision> decisions_;  // ascending; the first is at the run's first batch
};

}  // namespace lockstep
