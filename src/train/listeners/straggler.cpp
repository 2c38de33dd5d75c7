#include "train/listeners/straggler.h"

#include <fmt/format.h>

#include "base/statistics.h"
#include "base/text.h"
#include "formats/step_times.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kWindow{20}, kPersists{30}, kSilence{600};
constexpr int64_t kFewSteps = 5;  // fewer say little: the window then lasts longer
constexpr std::size_t kMostMoments = 600;

// Returns the median over all ranks but `rank`.
template <typename Figure>
double median_of_others(std::size_t count, std::size_t rank, const Figure& figure) {
  std::vector<double> values;
  for (std::size_t r = 0; r < count; ++r) {
    if (r != rank) values.push_back(figure(r));
  }
  return median(std::move(values));
}

}  // namespace

void StragglerWatch::add(const std::vector<RankSeen>& ranks, Time now) {
  Moment moment{now, {}};
  for (const RankSeen& r : ranks) moment.sums.push_back(r.status.progress.sums);
  moments_.push_back(std::move(moment));
  auto enough = [&](const Moment& first) {
    return moments_.back().sums[0].steps - first.sums[0].steps >= kFewSteps;
  };
  while (moments_.size() > 2 && now - moments_[1].time >= kWindow && enough(moments_[1])) {
    moments_.pop_front();
  }
  while (moments_.size() > kMostMoments) moments_.pop_front();
  ranks_ = ranks;

  std::optional<Straggler> found = find();
  if (found && (!slowest_ || slowest_->rank != found->rank)) slow_since_ = now;
  slowest_ = std::move(found);
}

std::vector<StepShares> StragglerWatch::shares() const {
  std::vector<StepShares> out(ranks_.size());
  for (std::size_t r = 0; r < out.size(); ++r) {
    const StepSums &first = moments_.front().sums[r], &last = moments_.back().sums[r];
    const auto steps = static_cast<double>(last.steps - first.steps);
    if (steps <= 0) continue;
    out[r].steps = last.steps - first.steps;
    out[r].compute_seconds = (last.compute_seconds - first.compute_seconds) / steps;
    out[r].wait_seconds = (last.wait_seconds - first.wait_seconds) / steps;
    out[r].data_seconds = (last.data_seconds - first.data_seconds) / steps;
    out[r].step_seconds = (last.seconds() - first.seconds()) / steps;
    const auto targets = static_cast<double>(last.targets - first.targets);
    if (out[r].busy_seconds() > 0) {
      out[r].targets_per_second = targets / steps / out[r].busy_seconds();
    }
  }
  return out;
}

std::optional<Straggler> StragglerWatch::find() const {
  const std::vector<StepShares> all = shares();
  if (all.size() < 2) return {};
  Straggler out;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].steps < kFewSteps) return {};
    double usual = median_of_others(all.size(), r, [&](auto i) { return all[i].busy_seconds(); });
    double factor = usual > 0 ? all[r].busy_seconds() / usual : 1;
    if (factor > out.factor) out = {.rank = static_cast<int>(r), .factor = factor};
  }
  if (out.factor < kSlowRankFactor) return {};

  const std::size_t slow = static_cast<std::size_t>(out.rank);
  out.host = ranks_[slow].identity.host;
  const HostFigures& usage = ranks_[slow].status.usage;
  double usual_data =
      median_of_others(all.size(), slow, [&](auto i) { return all[i].data_seconds; });
  double usual_busy =
      median_of_others(all.size(), slow, [&](auto i) { return all[i].busy_seconds(); });
  double usual_cores = median_of_others(
      all.size(), slow, [&](auto i) { return ranks_[i].status.usage.process_cores; });
  constexpr double kFull = 0.9, kLess = 0.9;
  if (all[slow].data_seconds - usual_data > (all[slow].busy_seconds() - usual_busy) / 2) {
    out.guess = "it waits for its data: look at its disk";
  } else if (usage.machine_share > kFull && usage.process_cores < kLess * usual_cores) {
    out.guess = fmt::format("other programs take its cores: it gets {:.1f} of {}",
                            usage.process_cores, usage.cores);
  } else {
    out.guess = "its machine computes more slowly";
  }
  return out;
}

std::optional<Straggler> StragglerWatch::lasting(Time now) {
  bool due =
      slowest_ && now - slow_since_ >= kPersists && (told_ == Time{} || now - told_ >= kSilence);
  if (!due) return {};
  told_ = now;
  return slowest_;
}

}  // namespace lockstep
