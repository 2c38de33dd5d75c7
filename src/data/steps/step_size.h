// Says how many items make a step: as a whole, over all ranks, or a rank's micro-batch. Where that
// number changes within an epoch, because a run goes on with other ranks or another configuration,
// the rest of the epoch is divided anew: each item still occurs once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/fields.h"

namespace lockstep {

// The key `per_rank` of every task's section [batch]. It stands in place of the keys that count the
// whole step, which then has per_rank * ranks * accumulate items.
struct PerRankConfig {
  int64_t per_rank = 0;  // items of a micro-batch of a rank; 0: keys of the whole step count

  // `items`: what is counted, in the plural.
  void describe(Fields& f, const std::string& items);
  bool is_on() const { return per_rank > 0; }
  // Call it once the ranks of the run are known: the saved configuration tells the whole step.
  // Returns its items. REQUIRES is_on().
  int64_t settle(int64_t ranks, int64_t accumulate);

 private:
  int64_t ranks_ = 0, accumulate_ = 1;
};

// What a task tells of its keys, for checks that are the same for all tasks.
struct StepSizeKeys {
  struct Whole {
    std::string name;  // in [batch]
    int64_t* value;    // 0: another key counts
  };
  std::vector<Whole> whole;
  PerRankConfig* per_rank;
};

struct BatchSize {
  int64_t size = 0;   // of a full step, over all ranks; 0: the configuration does not tell it
  std::string items;  // what `size` counts: "images", "tokens"
  bool operator==(const BatchSize&) const = default;
};

// Steps in a row that have one size.
struct EpochStretch {
  int64_t steps = 0;
  BatchSize each;
  bool operator==(const EpochStretch&) const = default;
};

// Which items of an epoch, in their order, are in which of its steps.
class EpochSteps {
 public:
  explicit EpochSteps(int64_t size) : size_(size) {}

  struct Range {
    int64_t begin = 0, end = 0;
    int64_t count() const { return end - begin; }
  };
  // The first steps of `epoch` were of other sizes, in an earlier process.
  void continue_epoch(int64_t epoch, std::vector<EpochStretch> done);
  int64_t size() const { return size_; }  // of a full step, from now on
  // Returns how many steps of an epoch of `items` are full.
  int64_t full_steps(int64_t epoch, int64_t items) const;
  // Returns the items of a step, of `items` in the epoch; the last may lack some, or have none.
  Range range(int64_t epoch, int64_t step, int64_t items) const;

 private:
  int64_t size_;
  int64_t continued_epoch_ = -1;
  std::vector<EpochStretch> done_;  // of continued_epoch_
};

}  // namespace lockstep
