// Says how a step is divided among the ranks and their micro-batches. What a step averages over is
// the same for every division: only who computes what changes.
//
// Ranks with equal shares get what an equal division gives, to the last item.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/fields.h"

namespace lockstep {

inline constexpr int64_t kEqualWeight = 1000;  // of a rank whose share is the mean over the ranks

struct RankShare {
  int64_t weight = kEqualWeight;  // of the step, relative to the weights of the other ranks
  int64_t micro_batches = 1;      // in which the rank computes its share, one after the other
  bool operator==(const RankShare&) const = default;
};
using RankShares = std::vector<RankShare>;  // by rank

RankShares equal_shares(int64_t ranks, int64_t micro_batches);
// Returns the share of the step of each rank, in parts of 1.
std::vector<double> parts_of_one(const RankShares& shares);
// Returns "57 %, 29 % and 14 %"; micro-batches are named where some rank has several: "57 % in 2".
std::string shares_text(const RankShares& shares);

// The parts of a step: one for each micro-batch of each rank, first those that ranks compute first.
class StepParts {
 public:
  StepParts() : StepParts(equal_shares(1, 1)) {}  // one part: the whole step
  // Weights and micro-batches are 1 or more and below 2^20.
  explicit StepParts(const RankShares& shares);

  int64_t count() const { return std::ssize(ranks_); }
  int rank_of(int64_t part) const { return ranks_[static_cast<std::size_t>(part)]; }
  std::vector<int64_t> of_rank(int rank) const;  // its parts, ascending

  // Gives each item, in the order of `costs` (largest first is best), to the part that is then
  // filled least for its weight, of equal ones to the first (Graham 1969, "Bounds on
  // multiprocessing timing anomalies", with speeds). No part is empty unless there are fewer items
  // than parts. Returns the part of each item.
  std::vector<int64_t> spread(std::span<const int64_t> costs) const;

  struct Range {
    int64_t begin = 0, end = 0;
  };
  // Returns which of `items` in a row are of `part` when the parts `of`, ascending, take them all.
  // No range is empty unless there are fewer items than parts.
  Range range(int64_t items, int64_t part, std::span<const int64_t> of) const;
  // Likewise, when all parts take them.
  Range range(int64_t items, int64_t part) const;

 private:
  std::vector<int> ranks_;        // by part
  std::vector<int64_t> weights_;  // by part
};

// The key `shares` of every task's section [batch].
struct SharesConfig {
  std::string shares = "equal";

  void describe(Fields& f);
  bool follows_speed() const { return shares == "speed"; }
  // Returns the weights that "10:9:5" lists, by rank; empty for words.
  std::vector<int64_t> listed() const;
  // Returns what is wrong with the value; empty: nothing.
  std::string check() const;
};

// Returns the shares of a list, scaled to kEqualWeight. Throws ConfigError when it has not one
// number for each of `ranks`.
RankShares listed_shares(const std::vector<int64_t>& listed, int64_t ranks, int64_t micro_batches);

}  // namespace lockstep
