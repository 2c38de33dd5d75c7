#include "train/parts/share_timeline.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace lockstep {

std::string to_line(const ShareDecision& decision) {
  using Json = nlohmann::ordered_json;
  Json weights = Json::array(), micro_batches = Json::array();
  for (const RankShare& share : decision.shares) {
    weights.push_back(share.weight);
    micro_batches.push_back(share.micro_batches);
  }
  const Json json = {{"from_step", decision.step},
                     {"epoch", decision.from.epoch},
                     {"step_in_epoch", decision.from.step_in_epoch},
                     {"ranks", decision.shares.size()},
                     {"weights", weights},
                     {"micro_batches", micro_batches},
                     {"accumulate", decision.accumulate},
                     {"seconds", decision.seconds},
                     {"why", decision.why}};
  return json.dump();
}

ShareDecision decision_from_line(const std::string& line, const std::string& file) {
  try {
    const auto json = nlohmann::json::parse(line);
    ShareDecision out{.from = {json.at("epoch"), json.at("step_in_epoch")},
                      .step = json.at("from_step"),
                      .accumulate = json.at("accumulate"),
                      .seconds = json.at("seconds"),
                      .why = json.at("why")};
    const auto& weights = json.at("weights");
    const auto& micro_batches = json.at("micro_batches");
    for (std::size_t rank = 0; rank < weights.size(); ++rank) {
      const RankShare share{weights.at(rank), micro_batches.at(rank)};
      if (share.weight < 1 || share.micro_batches < 1) {
        throw DataError("{}: a rank without a share: {}", file, line);
      }
      out.shares.push_back(share);
    }
    if (out.shares.empty()) throw DataError("{}: shares of no rank: {}", file, line);
    return out;
  } catch (const nlohmann::json::exception& error) {
    DataError wrong("{}: not a decision on shares: {}", file, line);
    wrong.set_cause(error.what());
    throw wrong;
  }
}

ShareTimeline::ShareTimeline(RankShares first) {
  decisions_.push_back({.shares = std::move(first)});
}

bool ShareTimeline::take_over(const std::vector<ShareDecision>& decisions, BatchPlace now,
                              int64_t ranks) {
  std::lock_guard lock(mutex_);
  if (decisions.empty()) return false;
  const std::vector<ShareDecision> before = decisions_;
  bool any = false;  // that holds at `now`
  for (const ShareDecision& decision : decisions) {
    any = any || decision.from <= now;
    add_unlocked(decision);
  }
  const std::size_t current = index_at(now);
  if (!any || std::ssize(decisions_[current].shares) != ranks) {
    decisions_ = before;
    return false;
  }
  const auto other =
      std::find_if(decisions_.begin() + static_cast<std::ptrdiff_t>(current), decisions_.end(),
                   [&](const ShareDecision& d) { return std::ssize(d.shares) != ranks; });
  decisions_.erase(other, decisions_.end());
  return true;
}

void ShareTimeline::add(ShareDecision decision) {
  std::lock_guard lock(mutex_);
  add_unlocked(std::move(decision));
}

void ShareTimeline::add_unlocked(ShareDecision decision) {
  std::erase_if(decisions_, [&](const ShareDecision& d) { return d.from >= decision.from; });
  decisions_.push_back(std::move(decision));
}

std::size_t ShareTimeline::index_at(BatchPlace place) const {
  const auto later = std::find_if(decisions_.begin(), decisions_.end(),
                                  [&](const ShareDecision& d) { return d.from > place; });
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, later - decisions_.begin() - 1));
}

RankShares ShareTimeline::at(BatchPlace place) const {
  std::lock_guard lock(mutex_);
  return decisions_[index_at(place)].shares;
}

bool ShareTimeline::has_after(BatchPlace place) const {
  std::lock_guard lock(mutex_);
  return decisions_.back().from > place;
}

std::vector<ShareDecision> ShareTimeline::from(BatchPlace place) const {
  std::lock_guard lock(mutex_);
  return {decisions_.begin() + static_cast<std::ptrdiff_t>(index_at(place)), decisions_.end()};
}

}  // namespace lockstep
