#include "train/parts/share_policy.h"

#include <algorithm>

#include "base/statistics.h"

namespace lockstep {

namespace {

constexpr double kMostShortfall = 0.3;

RankPace pace_of(const RankTimes& times) {
  return {.work = static_cast<double>(times.forward) + times.backward,
          .fixed = static_cast<double>(times.data) + times.optimizer + times.other};
}

// Returns the median over the steps, by rank.
std::vector<RankPace> medians(const std::vector<std::vector<RankPace>>& steps) {
  std::vector<RankPace> out(steps.front().size());
  for (std::size_t rank = 0; rank < out.size(); ++rank) {
    std::vector<double> work, fixed;
    for (const std::vector<RankPace>& step : steps) {
      work.push_back(step[rank].work);
      fixed.push_back(step[rank].fixed);
    }
    out[rank] = {.work = median(std::move(work)), .fixed = median(std::move(fixed))};
  }
  return out;
}

double slowest(std::span<const RankPace> paces) {
  double out = 0;
  for (const RankPace& pace : paces) out = std::max(out, pace.busy());
  return out;
}

}  // namespace

BalancedShares balance(std::span<const RankPace> paces, std::span<const double> parts,
                       std::span<const double> least) {
  const std::size_t ranks = paces.size();
  BalancedShares out{.parts = std::vector<double>(ranks, 0)};
  std::vector<char> at_least(ranks, 0);  // ranks whose share is their least
  auto seconds_for = [&](std::size_t rank, double part) {
    return paces[rank].fixed + paces[rank].work * part / parts[rank];
  };
  for (bool settled = false; !settled;) {
    double left = 1, speed = 0, head_start = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (at_least[rank] != 0) {
        left -= least[rank];
        continue;
      }
      const double own = parts[rank] / paces[rank].work;  // of the step in a second
      speed += own;
      head_start += own * paces[rank].fixed;
    }
    settled = true;
    if (speed == 0) break;
    const double together = (left + head_start) / speed;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (at_least[rank] != 0) continue;
      out.parts[rank] = (together - paces[rank].fixed) * parts[rank] / paces[rank].work;
      if (out.parts[rank] >= least[rank]) continue;
      out.parts[rank] = least[rank];
      at_least[rank] = 1;
      settled = false;
    }
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    out.seconds = std::max(out.seconds, seconds_for(rank, out.parts[rank]));
  }
  return out;
}

std::optional<ShareProposal> SharePolicy::after_step(const std::vector<double>& parts,
                                                     std::span<const double> least,
                                                     std::span<const RankTimes> times) {
  if (parts != parts_) {
    parts_ = parts;
    window_.clear();
    passed_over_ = 0;
  }
  std::vector<RankPace> paces;
  for (const RankTimes& t : times) paces.push_back(pace_of(t));
  // A rank that had no item, or told no times, says nothing of its speed.
  const bool all_worked =
      std::all_of(paces.begin(), paces.end(), [](const RankPace& p) { return p.work > 0; });
  if (paces.size() != parts.size() || paces.size() < 2 || !all_worked) return std::nullopt;
  if (passed_over_ < rules_.warm_up) {
    ++passed_over_;
    return std::nullopt;
  }
  window_.push_back(std::move(paces));
  const bool is_first = looked_ < rules_.first_decisions;
  if (std::ssize(window_) < (is_first ? rules_.first_window : rules_.window)) return std::nullopt;

  const std::vector<RankPace> usual = medians(window_);
  window_.clear();
  ++looked_;
  const double busy = slowest(usual);
  if (promised_ > 0) shortfall_ = std::clamp(busy / promised_ - 1, 0.0, kMostShortfall);
  promised_ = 0;
  const BalancedShares balanced = balance(usual, parts, least);
  const double gain = 1 - balanced.seconds / busy;
  if (gain <= (is_first ? rules_.first_gain : rules_.gain) + shortfall_) return std::nullopt;
  promised_ = balanced.seconds;
  ShareProposal out{.parts = balanced.parts, .gain = gain};
  for (const RankPace& pace : usual) out.seconds.push_back(pace.busy());
  return out;
}

}  // namespace lockstep
