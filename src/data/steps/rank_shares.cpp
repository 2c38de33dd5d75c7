#include "data/steps/rank_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr int64_t kMostListed = 1'000'000;
constexpr int kWeightBits = 20;  // a part's weight is its rank's times 2^20 over its micro-batches

// Returns the number that `text` is, if it is a whole number that a list may have.
std::optional<int64_t> listed_number(const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 1 || value > kMostListed) return std::nullopt;
  return value;
}

}  // namespace

RankShares equal_shares(int64_t ranks, int64_t micro_batches) {
  return RankShares(static_cast<std::size_t>(ranks), {.micro_batches = micro_batches});
}

std::vector<double> parts_of_one(const RankShares& shares) {
  double all = 0;
  for (const RankShare& share : shares) all += static_cast<double>(share.weight);
  std::vector<double> out;
  for (const RankShare& share : shares) out.push_back(static_cast<double>(share.weight) / all);
  return out;
}

std::string shares_text(const RankShares& shares) {
  const bool several = std::any_of(shares.begin(), shares.end(),
                                   [](const RankShare& s) { return s.micro_batches > 1; });
  const std::vector<double> parts = parts_of_one(shares);
  std::string out;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    if (rank > 0) out += rank + 1 == shares.size() ? " and " : ", ";
    out += fmt::format("{:.3g} %", 100 * parts[rank]);
    if (several) out += fmt::format(" in {}", shares[rank].micro_batches);
  }
  return out;
}

StepParts::StepParts(const RankShares& shares) {
  int64_t most = 0;
  for (const RankShare& share : shares) most = std::max(most, share.micro_batches);
  for (int64_t micro = 0; micro < most; ++micro) {
    for (std::size_t rank = 0; rank < shares.size(); ++rank) {
      const RankShare& share = shares[rank];
      if (share.micro_batches <= micro) continue;
      ranks_.push_back(static_cast<int>(rank));
      weights_.push_back((share.weight << kWeightBits) / share.micro_batches);
    }
  }
}

std::vector<int64_t> StepParts::of_rank(int rank) const {
  std::vector<int64_t> out;
  for (int64_t part = 0; part < count(); ++part) {
    if (rank_of(part) == rank) out.push_back(part);
  }
  return out;
}

std::vector<int64_t> StepParts::spread(std::span<const int64_t> costs) const {
  std::vector<int64_t> load(ranks_.size(), 0), out;
  std::vector<char> has_items(ranks_.size(), 0);
  int64_t empty = count(), left = std::ssize(costs);
  out.reserve(costs.size());
  for (const int64_t cost : costs) {
    const bool only_empty = left <= empty;  // the last ones are for those that have none yet
    std::size_t best = ranks_.size();
    for (std::size_t part = 0; part < ranks_.size(); ++part) {
      if (only_empty && has_items[part] != 0) continue;
      if (best == ranks_.size() || static_cast<__int128>(load[part] + cost) * weights_[best] <
                                       static_cast<__int128>(load[best] + cost) * weights_[part]) {
        best = part;
      }
    }
    load[best] += cost;
    empty -= has_items[best] == 0 ? 1 : 0;
    has_items[best] = 1;
    --left;
    out.push_back(static_cast<int64_t>(best));
  }
  return out;
}

StepParts::Range StepParts::range(int64_t items, int64_t part, std::span<const int64_t> of) const {
  __int128 all = 0;
  for (const int64_t p : of) all += weights_[static_cast<std::size_t>(p)];
  const int64_t parts = std::ssize(of);
  Range out;
  __int128 before = 0;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t p = of[static_cast<std::size_t>(i)];
    before += weights_[static_cast<std::size_t>(p)];
    out.begin = out.end;
    out.end = static_cast<int64_t>(before * items / all);
    // One at least, and one for each part that follows; equal parts have that by themselves.
    if (items >= parts) out.end = std::clamp(out.end, out.begin + 1, items - (parts - 1 - i));
    if (p == part) return out;
  }
  return {};
}

StepParts::Range StepParts::range(int64_t items, int64_t part) const {
  std::vector<int64_t> all(ranks_.size());
  std::iota(all.begin(), all.end(), 0);
  return range(items, part, all);
}

void SharesConfig::describe(Fields& f) {
  f("shares", &shares, Any{},
    "of a step, by rank: equal; speed: as fast as each is, measured and followed; or a list, as "
    "10:9:5");
}

std::vector<int64_t> SharesConfig::listed() const {
  if (shares == "equal" || shares == "speed") return {};
  std::vector<int64_t> out;
  for (const std::string& text : split(shares, ':')) {
    out.push_back(listed_number(text).value_or(0));
  }
  return out;
}

std::string SharesConfig::check() const {
  const std::vector<int64_t> numbers = listed();
  if (std::all_of(numbers.begin(), numbers.end(), [](int64_t n) { return n > 0; }) &&
      numbers.size() != 1) {
    return "";
  }
  return fmt::format(
      "\"{}\": expected equal, speed, or a whole number from 1 to {} for each rank, "
      "as 10:9:5{}",
      shares, with_commas(kMostListed), did_you_mean(shares, {"equal", "speed"}));
}

RankShares listed_shares(const std::vector<int64_t>& listed, int64_t ranks, int64_t micro_batches) {
  if (std::ssize(listed) != ranks) {
    throw ConfigError("batch.shares: {} numbers, but there are {} rank{}: expected one for each",
                      listed.size(), ranks, ranks == 1 ? "" : "s");
  }
  const double all = static_cast<double>(std::accumulate(listed.begin(), listed.end(), int64_t{0}));
  const double whole = static_cast<double>(kEqualWeight * ranks);
  RankShares out;
  for (const int64_t number : listed) {
    const double weight = std::round(static_cast<double>(number) / all * whole);
    out.push_back({std::max<int64_t>(1, static_cast<int64_t>(weight)), micro_batches});
  }
  return out;
}

}  // namespace lockstep
