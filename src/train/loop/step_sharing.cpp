#include "train/loop/step_sharing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "train/parts/agreement.h"

namespace lockstep {

namespace {

std::vector<ShareDecision> decisions_in(const std::string& text, const std::string& file) {
  std::vector<ShareDecision> out;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty()) out.push_back(decision_from_line(line, file));
  }
  return out;
}

std::string seconds_text(const std::vector<double>& seconds) {
  std::string out;
  for (std::size_t rank = 0; rank < seconds.size(); ++rank) {
    if (rank > 0) out += rank + 1 == seconds.size() ? " and " : ", ";
    out += fmt::format("{:.3g}", seconds[rank]);
  }
  return out;
}

void announce(const ShareDecision& decision) {
  log_info("shares from step {} on: {} ({}{})", with_commas(decision.step),
           shares_text(decision.shares), decision.why,
           decision.seconds.empty()
               ? ""
               : fmt::format("; ranks were busy {} s", seconds_text(decision.seconds)));
}

}  // namespace

StepSharing::StepSharing(const RunConfig& config, World& world, GradientReducer& reducer,
                         const Place& place, int64_t ranks)
    : config_(config),
      task_(*config.task),
      world_(world),
      place_(place),
      ranks_(ranks),
      names_(world.all_gather_strings(rank_and_host(world))),
      items_(task_.items_per_step()),
      timeline_(equal_shares(ranks, 1)) {
  const SharesConfig* shares = task_.shares();
  follows_speed_ = shares != nullptr && shares->follows_speed() && place.records && ranks > 1;
  if (config.training.fit_memory) {
    const std::vector<double> parts = parts_of_one(configured());
    const double largest = *std::max_element(parts.begin(), parts.end());
    fit_ = fit_to_memory(task_, world, reducer,
                         {.limit_bytes = config.training.fit_megabytes * 1e6,
                          .largest_part = follows_speed_ ? 1 : largest});
  }
}

void StepSharing::begin(const RunPosition& position) {
  RankShares shares = configured();
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    shares[rank].micro_batches = micro_batches_for(shares, rank);
  }
  // The saved configuration tells a number that is the same for all ranks.
  const int64_t first = shares.front().micro_batches;
  const bool same = std::all_of(shares.begin(), shares.end(),
                                [&](const RankShare& s) { return s.micro_batches == first; });
  if (fit_ && same) task_.set_accumulate(first);
  check_work(shares);
  timeline_.add({.shares = shares, .accumulate = fit_ ? 0 : task_.accumulate()});
  if (place_.records) take_over(position);
  const RankShares now = timeline_.at({position.epoch, position.step_in_epoch});
  if (fit_ || now != equal_shares(ranks_, task_.accumulate())) {
    log_info("shares of a step{}: {}", fit_ ? ", and micro-batches" : "", shares_text(now));
  }
}

// Returns the shares that the configuration asks for, without what memory asks for.
RankShares StepSharing::configured() const {
  const SharesConfig* shares = task_.shares();
  if (shares == nullptr || shares->listed().empty()) {
    return equal_shares(ranks_, task_.accumulate());
  }
  return listed_shares(shares->listed(), ranks_, task_.accumulate());
}

// Returns how many micro-batches the rank's share takes.
int64_t StepSharing::micro_batches_for(const RankShares& shares, std::size_t rank) const {
  if (fit_ && rank < fit_->loads.size()) return fit_->micro_batches(shares, rank);
  return fit_ ? fit_->micro_batches(shares, 0) : task_.accumulate();  // ranks of a larger job
}

// Returns the least part of a step of each rank: an item a micro-batch.
std::vector<double> StepSharing::least_parts(const RankShares& shares) const {
  std::vector<double> out;
  for (const RankShare& share : shares) {
    out.push_back(static_cast<double>(share.micro_batches) / std::max(items_, 1.0));
  }
  return out;
}

// Equal shares may leave ranks without an item, as they always might; others must not.
void StepSharing::check_work(const RankShares& shares) const {
  const SharesConfig* config = task_.shares();
  if (config == nullptr || config->shares == "equal") return;
  const std::vector<double> parts = parts_of_one(shares), least = least_parts(shares);
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    if (parts[rank] >= least[rank]) continue;
    ConfigError error(
        "batch.shares = {}: {} has {:.3g} % of a step of {:.4g} items, less than one for each of "
        "its micro-batches ({})",
        config->shares, rank < names_.size() ? names_[rank] : fmt::format("rank {}", rank),
        100 * parts[rank], items_, shares[rank].micro_batches);
    error.set_advice(fmt::format(
        "steps of {} items or more, a larger share, or without this rank",
        with_commas(static_cast<int64_t>(std::ceil(shares[rank].micro_batches / parts[rank])))));
    throw error;
  }
}

// Goes on with the decisions of an earlier process, as the rank has them whose checkpoint is taken.
void StepSharing::take_over(const RunPosition& position) {
  const BatchPlace now{position.epoch, position.step_in_epoch};
  const fs::path file = place_.folder.shares();
  std::string mine;
  if (place_.keeps && fs::exists(file)) mine = read_file(file);
  const auto holder = static_cast<std::size_t>(place_.holder);
  book_ = world_.all_gather_strings(mine).at(holder);
  const ShareDecision asked = timeline_.from(now).front();
  std::vector<ShareDecision> earlier = decisions_in(book_, file.string());
  bool same = timeline_.take_over(earlier, now, ranks_);
  const std::vector<ShareDecision> holds = timeline_.from(now);
  const ShareDecision& current = holds.front();
  for (std::size_t rank = 0; same && rank < current.shares.size(); ++rank) {
    same = current.accumulate == asked.accumulate &&
           (follows_speed_ || current.shares[rank].weight == asked.shares[rank].weight) &&
           current.shares[rank].micro_batches >= micro_batches_for(current.shares, rank);
  }
  if (same) {
    // What the file holds besides, of ranks that are no more, must not come between.
    ShareTimeline read(asked.shares);
    for (const ShareDecision& decision : earlier) read.add(decision);
    std::string lines;
    if (read.from(now).size() != holds.size()) {
      for (const ShareDecision& decision : holds) lines += to_line(decision) + "\n";
    }
    record(lines);
    return;
  }
  const bool is_new = earlier.empty();
  if (is_new && !follows_speed_ && !fit_ &&
      asked.shares == equal_shares(ranks_, asked.accumulate)) {
    return;  // nothing was decided
  }
  const std::string why = is_new ? "as configured" : "other ranks, memory or configuration";
  decide({.from = now,
          .step = position.step + 1,
          .shares = asked.shares,
          .accumulate = asked.accumulate,
          .why = why});
}

// Returns the place of the batch that comes so many batches after `place`.
BatchPlace StepSharing::after(BatchPlace place, int64_t batches) const {
  place.step_in_epoch += batches;
  for (int64_t steps = task_.steps_in_epoch(place.epoch); place.step_in_epoch >= steps;
       steps = task_.steps_in_epoch(place.epoch)) {
    place.step_in_epoch -= steps;
    ++place.epoch;
  }
  return place;
}

void StepSharing::after_step(const RunPosition& position,
                             const std::vector<RankTimes>& times_before) {
  if (!follows_speed_) return;
  const BatchPlace now{position.epoch, position.step_in_epoch - 1};
  const std::optional<BatchPlace> before = std::exchange(before_, now);
  // What an earlier process decided comes first.
  if (!before || timeline_.has_after(now)) return;
  RankShares shares = timeline_.at(*before);
  const std::optional<ShareProposal> due =
      policy_.after_step(parts_of_one(shares), least_parts(shares), times_before);
  if (!due) return;
  const RankShares current = shares;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    const double weight = due->parts[rank] * static_cast<double>(kEqualWeight * ranks_);
    shares[rank].weight = std::max<int64_t>(1, std::llround(weight));
  }
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    const RankShare& was = current[rank];
    shares[rank].micro_batches = micro_batches_for(shares, rank);
    // A rank that ran out of memory keeps micro-batches of that size.
    if (was.micro_batches > micro_batches_for(current, rank)) {
      const int64_t same_size =
          (was.micro_batches * shares[rank].weight + was.weight - 1) / was.weight;
      shares[rank].micro_batches = std::max(shares[rank].micro_batches, same_size);
    }
  }
  // The prefetch thread of a rank is at most one batch past those that it keeps.
  const int64_t ahead = kStepsPrefetched + 2;
  announce(decide({.from = after(now, ahead),
                   .step = position.step + ahead,
                   .shares = shares,
                   .accumulate = fit_ ? 0 : task_.accumulate(),
                   .seconds = due->seconds,
                   .why = fmt::format("a step gets {:.0f} % shorter", 100 * due->gain)}));
}

void StepSharing::divide_more(const RunPosition& position, int64_t items) {
  const BatchPlace now{position.epoch, position.step_in_epoch};
  ShareDecision decision = timeline_.from(now).front();
  decision.from = now;
  decision.step = position.step + 1;
  decision.seconds.clear();
  decision.why.clear();
  const std::vector<std::string> all = world_.all_gather_strings(std::to_string(items));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const int64_t largest = std::stoll(all[rank]);
    if (largest == 0) continue;
    if (largest == 1) {
      MachineError error("{} has not the memory for one example", names_[rank]);
      error.set_advice(
          "more memory there, a smaller model, shorter examples, or without this rank");
      throw error;
    }
    decision.shares[rank].micro_batches *= 2;
    decision.why += fmt::format("{}{}", decision.why.empty() ? "" : ", ", names_[rank]);
  }
  decision.why += " ran out of memory";
  announce(decide(std::move(decision)));
}

// Takes rank 0's decision on all ranks, once it is in their folders.
ShareDecision StepSharing::decide(ShareDecision decision) {
  const std::string line = world_.all_gather_strings(to_line(decision)).front();
  decision = decision_from_line(line, place_.folder.shares().string());
  record(line + "\n");
  timeline_.add(decision);
  return decision;
}

// Adds lines to the file of the folders that ranks keep, and returns when all have. Collective.
void StepSharing::record(const std::string& lines) {
  if (!place_.records) return;
  book_ += lines;
  together(world_, [&] {
    if (place_.keeps && !book_.empty()) write_file(place_.folder.shares(), book_);
  });
}

}  // namespace lockstep
