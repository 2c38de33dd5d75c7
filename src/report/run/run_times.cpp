#include "report/run/run_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/statistics.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostBins = 200, kMostSamples = 4096;
constexpr int64_t kFewSteps = 20, kShortStretch = 50;

// A phase's name and member; phases are in the order of a step.
struct Phase {
  const char* name;
  double RankPhases::*field;
};
constexpr Phase kOwnWork[] = {{"data", &RankPhases::data},
                              {"forward", &RankPhases::forward},
                              {"backward", &RankPhases::backward},
                              {"optimizer", &RankPhases::optimizer}};
constexpr Phase kAll[] = {
    {"data", &RankPhases::data},         {"forward", &RankPhases::forward},
    {"backward", &RankPhases::backward}, {"exchange", &RankPhases::exchange},
    {"peers", &RankPhases::peers},       {"optimizer", &RankPhases::optimizer},
    {"other", &RankPhases::other},       {"hidden", &RankPhases::hidden},
    {"sent", &RankPhases::sent},         {"received", &RankPhases::received}};

RankPhases phases_of(const RankTimes& times) {
  RankPhases out;
  out.add(times);
  return out;
}

// Visits every step of a file below `limit`.
void steps_below(const fs::path& file, int64_t limit,
                 const std::function<void(const StepTimes&)>& f) {
  read_step_times(file, [&](const StepTimes& step) {
    if (step.step < limit) f(step);
  });
}

// Returns files, each with the first step of a later one: from that step on, the later one counts.
std::vector<std::pair<fs::path, int64_t>> files_with_limits(const fs::path& folder) {
  std::vector<std::pair<fs::path, int64_t>> out;
  for (const fs::path& file : step_times_files(folder)) {
    const auto extent = step_times_extent(file);
    if (!extent) continue;
    for (auto& [before, limit] : out) limit = std::min(limit, extent->first);
    out.emplace_back(file, std::numeric_limits<int64_t>::max());
  }
  return out;
}

class Collector {
 public:
  void begin_file() { in_file_ = 0; }

  void add(const StepTimes& step) {
    auto& covered = out_.covered;
    if (!covered.empty() && covered.back().second + 1 == step.step) {
      covered.back().second = step.step;
    } else {
      covered.emplace_back(step.step, step.step);
    }
    add_to(out_.total, step);
    add_to_bin(step);
    if (in_file_++ < kWarmUpSteps) return;
    add_to(out_.steady, step);
    if (steady_++ % stride_ == 0) sample(step);
  }

  RunTimes take() {
    if (out_.steady.empty()) out_.steady = out_.total;
    for (RankPhases& rank : out_.steady) rank = rank.mean();
    out_.usual.resize(out_.total.size());
    for (std::size_t r = 0; r < out_.usual.size(); ++r) out_.usual[r] = typical(r);
    out_.bins = bins_;
    return std::move(out_);
  }

 private:
  static void add_to(std::vector<RankPhases>& ranks, const StepTimes& step) {
    if (ranks.size() < step.ranks.size()) ranks.resize(step.ranks.size());
    for (std::size_t r = 0; r < step.ranks.size(); ++r) ranks[r].add(step.ranks[r]);
  }

  // Bins grow with the run: when there are too many, neighbours are merged.
  void add_to_bin(const StepTimes& step) {
    if (bins_.empty() || bins_.back().ranks.front().steps >= width_) {
      if (bins_.size() == kMostBins) merge_bins();
      bins_.push_back({.first = step.step, .last = step.step, .ranks = {}});
    }
    bins_.back().last = step.step;
    add_to(bins_.back().ranks, step);
  }
  void merge_bins() {
    for (std::size_t i = 0; i < kMostBins / 2; ++i) {
      TimesBin joined = std::move(bins_[2 * i]);
      const TimesBin& next = bins_[2 * i + 1];
      joined.last = next.last;
      joined.ranks.resize(std::max(joined.ranks.size(), next.ranks.size()));
      for (std::size_t r = 0; r < next.ranks.size(); ++r) joined.ranks[r].add(next.ranks[r]);
      bins_[i] = std::move(joined);
    }
    bins_.resize(kMostBins / 2);
    width_ *= 2;
  }

  void sample(const StepTimes& step) {
    if (samples_.size() == kMostSamples) {
      for (std::size_t i = 0; i < kMostSamples / 2; ++i) samples_[i] = samples_[2 * i];
      samples_.resize(kMostSamples / 2);
      stride_ *= 2;
    }
    samples_.push_back(step);
  }
  RankPhases typical(std::size_t rank) const {
    RankPhases out;
    std::vector<RankPhases> ranks;
    for (const StepTimes& s : samples_) {
      if (rank >= s.ranks.size()) continue;
      const RankPhases one = phases_of(s.ranks[rank]);
      if (one.steps > 0) ranks.push_back(one);
    }
    if (ranks.empty()) return out;
    out.steps = 1;
    for (const Phase& phase : kAll) {
      std::vector<double> values;
      for (const RankPhases& r : ranks) values.push_back(r.*phase.field);
      out.*phase.field = median(std::move(values));
    }
    return out;
  }

  RunTimes out_;
  std::vector<TimesBin> bins_;
  int64_t width_ = 1, in_file_ = 0, steady_ = 0, stride_ = 1;
  std::vector<StepTimes> samples_;
};

// Returns the work of a rank over the median of the others'; 0 when it cannot be told.
double factor_of(const std::vector<RankPhases>& means, std::size_t rank) {
  std::vector<double> others;
  for (std::size_t r = 0; r < means.size(); ++r) {
    if (r != rank && means[r].steps > 0) others.push_back(means[r].working());
  }
  const double usual = others.empty() ? 0 : median(others);
  return usual > 0 ? means[rank].working() / usual : 0;
}

std::pair<int, double> slowest_of(const std::vector<RankPhases>& means) {
  std::pair<int, double> out{-1, 0};
  for (std::size_t r = 0; r < means.size(); ++r) {
    const double factor = factor_of(means, r);
    if (factor > out.second) out = {static_cast<int>(r), factor};
  }
  return out;
}

// A rank that is slower than the others costs them nothing worth telling where a slow network fills
// the step: what it works longer must be this share of the step.
constexpr double kSlowRankCost = 0.05;

bool is_slow(const std::vector<RankPhases>& means, int rank, double factor) {
  if (factor < kSlowRankFactor) return false;
  const RankPhases& slow = means[static_cast<std::size_t>(rank)];
  return slow.working() * (1 - 1 / factor) >= kSlowRankCost * slow.step();
}

std::string slowest_phase(const std::vector<RankPhases>& means, int rank) {
  std::string out;
  double most = 0;
  for (const Phase& phase : kOwnWork) {
    std::vector<double> others;
    for (std::size_t r = 0; r < means.size(); ++r) {
      if (std::cmp_not_equal(r, rank) && means[r].steps > 0)
        others.push_back(means[r].*phase.field);
    }
    const double excess =
        means[static_cast<std::size_t>(rank)].*phase.field - (others.empty() ? 0 : median(others));
    if (excess > most) {
      most = excess;
      out = phase.name;
    }
  }
  return out;
}

// Returns the longest stretch of neighbouring bins in which one rank is slow.
std::optional<SlowRank> slow_stretch(const RunTimes& times) {
  SlowRank best, now;
  int64_t most = 0, steps = 0;
  std::vector<RankPhases> sums, of_best;
  for (const TimesBin& bin : times.bins) {
    std::vector<RankPhases> means;
    for (const RankPhases& rank : bin.ranks) means.push_back(rank.mean());
    const auto [rank, factor] = slowest_of(means);
    if (!is_slow(means, rank, factor)) {
      steps = 0;
      continue;
    }
    if (steps == 0 || rank != now.rank) {
      now = {.rank = rank, .first = bin.first};
      steps = 0;
      sums.assign(bin.ranks.size(), {});
    }
    steps += bin.ranks.front().steps;
    now.last = bin.last;
    sums.resize(std::max(sums.size(), bin.ranks.size()));
    for (std::size_t r = 0; r < bin.ranks.size(); ++r) sums[r].add(bin.ranks[r]);
    if (steps <= most) continue;
    most = steps;
    best = now;
    of_best = sums;
  }
  if (most < std::max(kShortStretch, times.steps() / 10)) return std::nullopt;
  for (RankPhases& rank : of_best) rank = rank.mean();
  best.factor = factor_of(of_best, static_cast<std::size_t>(best.rank));
  best.because = slowest_phase(of_best, best.rank);
  return best;
}

}  // namespace

void RankPhases::add(const RankTimes& t) {
  // In local steps, ranks of another group are zero: rank 0 does not hear of them.
  if (t.data + t.forward + t.backward + t.wait + t.optimizer + t.other <= 0) return;
  steps += 1;
  data += t.data;
  forward += t.forward;
  backward += t.backward;
  const double waited = std::max(0.0F, t.wait);
  const double for_peers = std::clamp<double>(t.peers, 0, waited);
  peers += for_peers;
  exchange += waited - for_peers;
  optimizer += t.optimizer;
  other += t.other;
  hidden += t.hidden;
  sent += t.sent_bytes;
  received += t.received_bytes;
}

void RankPhases::add(const RankPhases& phases) {
  steps += phases.steps;
  for (const Phase& phase : kAll) this->*phase.field += phases.*phase.field;
}

RankPhases RankPhases::mean() const {
  RankPhases out;
  if (steps == 0) return out;
  out.steps = steps;
  for (const Phase& phase : kAll) {
    out.*phase.field = this->*phase.field / static_cast<double>(steps);
  }
  return out;
}

bool RunTimes::covers(int64_t step) const {
  auto after = std::upper_bound(covered.begin(), covered.end(), step,
                                [](int64_t s, const auto& range) { return s < range.first; });
  return after != covered.begin() && step <= std::prev(after)->second;
}

std::string RunTimes::rank_name(int rank) const {
  auto host = hosts.find(rank);
  return host == hosts.end() || host->second.empty()
             ? fmt::format("rank {}", rank)
             : fmt::format("rank {} on {}", rank, host->second);
}

std::optional<RunTimes> read_run_times(const RunFacts& facts) {
  Collector collector;
  bool any = false;
  for (const auto& [file, limit] : files_with_limits(facts.folder / "times")) {
    collector.begin_file();
    steps_below(file, limit, [&](const StepTimes& step) {
      any = true;
      collector.add(step);
    });
  }
  if (!any) return std::nullopt;
  RunTimes out = collector.take();
  if (facts.live.is_object() && facts.live.contains("ranks")) {
    for (const auto& rank : facts.live["ranks"]) {
      out.hosts[rank.value("rank", 0)] = rank.value("host", "");
    }
  }
  return out;
}

void for_each_counted_step(const fs::path& folder, const std::function<void(const StepTimes&)>& f) {
  for (const auto& [file, limit] : files_with_limits(folder)) steps_below(file, limit, f);
}

std::optional<SlowRank> find_slow_rank(const RunTimes& times) {
  if (times.ranks() < 2 || times.steps() < kFewSteps) return std::nullopt;
  const auto [rank, factor] = slowest_of(times.steady);
  if (!is_slow(times.steady, rank, factor)) return slow_stretch(times);
  return SlowRank{.rank = rank,
                  .factor = factor,
                  .first = times.covered.front().first,
                  .last = times.covered.back().second,
                  .whole_run = true,
                  .because = slowest_phase(times.steady, rank)};
}

std::string describe(const SlowRank& slow, const RunTimes& times) {
  return fmt::format("{} is {:.2f} times as slow as the others{}, most of all in {}",
                     times.rank_name(slow.rank), slow.factor,
                     slow.whole_run ? ""
                                    : fmt::format(" in steps {} to {}", with_commas(slow.first),
                                                  with_commas(slow.last)),
                     slow.because.empty() ? "no single phase" : slow.because);
}

ExchangeFigures exchange_figures(const RunTimes& times) {
  ExchangeFigures out;
  double ranks = 0, least_wait = std::numeric_limits<double>::max();
  for (const RankPhases& rank : times.steady) {
    if (rank.steps == 0) continue;
    ranks += 1;
    out.step += rank.step();
    out.exposed += rank.exchange;
    out.hidden += rank.hidden;
    out.peers += rank.peers;
    out.sent += rank.sent;
    out.received += rank.received;
    least_wait = std::min(least_wait, rank.wait());
  }
  if (ranks == 0) return out;
  for (double* value :
       {&out.step, &out.exposed, &out.hidden, &out.peers, &out.sent, &out.received}) {
    *value /= ranks;
  }
  // The exchange takes no longer than the least waiting rank waits; the others wait beyond that for
  // this rank.
  const double beyond = std::max(0.0, out.exposed - least_wait);
  out.exposed -= beyond;
  out.peers += beyond;
  return out;
}

std::optional<std::string> cause_by_phases(const StepTimes& step, const RunTimes& times) {
  if (step.ranks.empty() || times.usual.empty() || times.usual[0].steps == 0) return std::nullopt;
  const RankPhases first = phases_of(step.ranks[0]);
  const double excess = first.step() - times.usual[0].step();
  if (excess <= 0) return std::nullopt;
  // The phase that grew most on any rank explains the step, if it explains half of the excess.
  std::string name;
  double most = excess / 2;
  for (std::size_t r = 0; r < std::min(step.ranks.size(), times.usual.size()); ++r) {
    const RankPhases now = phases_of(step.ranks[r]);
    if (now.steps == 0) continue;
    for (const Phase& phase : kAll) {
      if (phase.field == &RankPhases::peers) continue;  // another rank's work
      if (phase.field == &RankPhases::hidden) break;    // from here on, no parts of the sum
      const double grown = now.*phase.field - times.usual[r].*phase.field;
      if (grown <= most) continue;
      most = grown;
      name = phase.field == &RankPhases::exchange ? "the exchange took longer"
             : phase.field == &RankPhases::data
                 ? fmt::format("{} waited for data", times.rank_name(static_cast<int>(r)))
             : phase.field == &RankPhases::other
                 ? fmt::format("{} did other things: logs, checks, what is not a phase",
                               times.rank_name(static_cast<int>(r)))
                 : fmt::format("{} took longer in {}", times.rank_name(static_cast<int>(r)),
                               phase.name);
    }
  }
  return name.empty() ? std::nullopt : std::optional(name);
}

void refine_causes(const fs::path& folder, const RunTimes& times, Outliers& outliers) {
  std::unordered_map<int64_t, SlowStep*> wanted;
  for (SlowStep& slow : outliers.steps) {
    if (is_general(slow.cause)) wanted[slow.step] = &slow;
  }
  if (wanted.empty()) return;
  for_each_counted_step(folder, [&](const StepTimes& step) {
    auto found = wanted.find(step.step);
    if (found == wanted.end()) return;
    if (auto cause = cause_by_phases(step, times)) found->second->cause = *cause;
  });
  add_up_causes(outliers);
}

}  // namespace lockstep
