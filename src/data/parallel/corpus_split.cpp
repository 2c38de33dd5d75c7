#include "data/parallel/corpus_split.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/ordered_parallel.h"
#include "base/random.h"
#include "base/usable_cores.h"
#include "data/parallel/near_duplicates.h"

namespace lockstep {

namespace {

constexpr int64_t kPairsAtATime = 2048;  // per thread
constexpr int64_t kLargestHeldOut = 8;   // a larger group would take too much out of train
constexpr uint64_t kShuffleStream = 0x7368756666;

// FNV-1a with 64 bits, scattered by mix64. 9 million sentences collide with a probability of about
// 2e-6.
uint64_t hash_key(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix64(hash);
}

struct PairKeys {
  uint64_t source, target;
};

int64_t pair_blocks(int64_t count) { return (count + kPairsAtATime - 1) / kPairsAtATime; }

// Calls visit(i) for every index in [0, count) on all cores; visit must be thread-safe.
template <typename Visit>
void for_each_index(int64_t count, const Visit& visit) {
  ordered_parallel(
      pair_blocks(count), usable_threads(),
      [&](int64_t block) {
        const int64_t end = std::min(count, (block + 1) * kPairsAtATime);
        for (int64_t i = block * kPairsAtATime; i < end; ++i) visit(i);
        return 0;
      },
      [](int) {});
}

class Splitter {
 public:
  Splitter(const SentencePairs& pairs, const SplitRules& rules) : pairs_(pairs), rules_(rules) {}

  CorpusSplit run() {
    drop_repetitions();
    compute_keys();
    make_groups();
    hold_out();
    fill_train();
    return std::move(out_);
  }

 private:
  void drop_repetitions() {
    std::unordered_set<uint64_t> seen;
    for (int64_t i = 0; i < pairs_.size(); ++i) {
      PairView pair = pairs_[i];
      bool is_new = seen.insert(combine_keys(hash_key(pair.source), hash_key(pair.target))).second;
      if (is_new) {
        kept_.push_back(i);
      } else {
        ++out_.dropped["repeated pair"];
      }
    }
  }

  int64_t kept() const { return static_cast<int64_t>(kept_.size()); }
  PairView pair(int64_t k) const { return pairs_[kept_[static_cast<std::size_t>(k)]]; }
  PairKeys& keys(int64_t k) { return keys_[static_cast<std::size_t>(k)]; }

  void compute_keys() {
    keys_.resize(kept_.size());
    std::vector<std::atomic<uint32_t>> counts(NearCopyIndex::kBuckets);
    auto count = [&](const std::string& key) {
      for (uint32_t gram : trigrams(key)) {
        counts[NearCopyIndex::bucket_of(gram)].fetch_add(1, std::memory_order_relaxed);
      }
      return hash_key(key);
    };
    for_each_index(kept(), [&](int64_t k) {
      keys(k) = {count(comparison_key(pair(k).source)), count(comparison_key(pair(k).target))};
    });
    frequencies_.assign(counts.begin(), counts.end());
  }

  void make_groups() {
    DisjointSets sets(kept());
    std::unordered_map<uint64_t, int64_t> first_source;
    std::unordered_map<uint64_t, int64_t> first_target;
    for (int64_t k = 0; k < kept(); ++k) {
      sets.unite(k, first_source.try_emplace(keys(k).source, k).first->second);
      sets.unite(k, first_target.try_emplace(keys(k).target, k).first->second);
    }
    group_.resize(kept_.size());
    for (int64_t k = 0; k < kept(); ++k) group_[static_cast<std::size_t>(k)] = sets.find(k);
  }

  struct Group {
    uint64_t rank = std::numeric_limits<uint64_t>::max();  // the smallest are held out first
    int64_t size = 0;
    int64_t representative = -1;  // its first pair that is long enough
    int64_t name = 0;
  };

  std::vector<Group> groups_by_rank() {
    std::unordered_map<int64_t, Group> groups;
    for (int64_t k = 0; k < kept(); ++k) {
      Group& group = groups[group_[static_cast<std::size_t>(k)]];
      group.name = group_[static_cast<std::size_t>(k)];
      ++group.size;
      group.rank = std::min(group.rank, combine_keys(rules_.seed, keys(k).source));
      bool long_enough = count_words(pair(k).source) >= rules_.min_words &&
                         count_words(pair(k).target) >= rules_.min_words;
      if (long_enough && group.representative < 0) group.representative = k;
    }
    std::vector<Group> out;
    for (auto& [name, group] : groups) {
      if (group.representative >= 0 && group.size <= kLargestHeldOut) out.push_back(group);
    }
    std::sort(out.begin(), out.end(), [](const Group& a, const Group& b) {
      return std::pair(a.rank, a.name) < std::pair(b.rank, b.name);
    });
    return out;
  }

  void hold_out() {
    int64_t most = kept() / 20;
    auto test = static_cast<std::size_t>(std::min(rules_.test, most));
    auto dev = static_cast<std::size_t>(std::min(rules_.dev, most));
    sources_ = NearCopyIndex(rules_.near_copy, frequencies_);
    targets_ = NearCopyIndex(rules_.near_copy, frequencies_);
    for (const Group& group : groups_by_rank()) {
      if (out_.test.size() >= test && out_.dev.size() >= dev) break;
      PairView chosen = pair(group.representative);
      std::vector<uint32_t> source = trigrams(comparison_key(chosen.source));
      std::vector<uint32_t> target = trigrams(comparison_key(chosen.target));
      // A near copy of a held-out sentence is in no split, else dev and test would share it.
      if (sources_.has_near_copy(source) || targets_.has_near_copy(target)) continue;
      sources_.add(std::move(source));
      targets_.add(std::move(target));
      std::vector<int64_t>& split = out_.test.size() < test ? out_.test : out_.dev;
      split.push_back(kept_[static_cast<std::size_t>(group.representative)]);
      held_out_groups_.insert(group.name);
      chosen_.insert(group.representative);
    }
  }

  void fill_train() {
    enum class Fate : char { kTrain, kHeldOut, kCopy, kNear };
    std::vector<Fate> fates(kept_.size(), Fate::kTrain);
    for_each_index(kept(), [&](int64_t k) {
      Fate& fate = fates[static_cast<std::size_t>(k)];
      if (chosen_.contains(k)) {
        fate = Fate::kHeldOut;
      } else if (held_out_groups_.contains(group_[static_cast<std::size_t>(k)])) {
        fate = Fate::kCopy;
      } else if (sources_.has_near_copy(trigrams(comparison_key(pair(k).source))) ||
                 targets_.has_near_copy(trigrams(comparison_key(pair(k).target)))) {
        fate = Fate::kNear;
      }
    });
    for (std::size_t k = 0; k < fates.size(); ++k) {
      if (fates[k] == Fate::kTrain) out_.train.push_back(kept_[k]);
      if (fates[k] == Fate::kCopy) ++out_.dropped["copy of a held-out sentence"];
      if (fates[k] == Fate::kNear) ++out_.dropped["near copy of a held-out sentence"];
    }
    shuffle_pairs(out_.train, rules_.seed);
  }

  const SentencePairs& pairs_;
  const SplitRules& rules_;
  CorpusSplit out_;
  std::vector<int64_t> kept_;   // index of each pair that is not a repetition
  std::vector<PairKeys> keys_;  // of each kept pair
  std::vector<int64_t> group_;  // of each kept pair
  std::vector<uint32_t> frequencies_;
  NearCopyIndex sources_{1, {}}, targets_{1, {}};
  std::unordered_set<int64_t> held_out_groups_, chosen_;
};

}  // namespace

CorpusSplit split_corpus(const SentencePairs& pairs, const SplitRules& rules) {
  return Splitter(pairs, rules).run();
}

void shuffle_pairs(std::vector<int64_t>& order, uint64_t seed) {
  shuffle_with_key(order, combine_keys(seed, kShuffleStream));
}

int64_t count_overlap(const SentencePairs& train, const SentencePairs& held_out) {
  std::unordered_set<uint64_t> sources;
  std::unordered_set<uint64_t> targets;
  for (int64_t i = 0; i < held_out.size(); ++i) {
    sources.insert(hash_key(comparison_key(held_out[i].source)));
    targets.insert(hash_key(comparison_key(held_out[i].target)));
  }
  std::vector<PairKeys> keys(static_cast<std::size_t>(train.size()));
  for_each_index(train.size(), [&](int64_t i) {
    keys[static_cast<std::size_t>(i)] = {hash_key(comparison_key(train[i].source)),
                                         hash_key(comparison_key(train[i].target))};
  });
  std::unordered_set<uint64_t> shared_sources;
  std::unordered_set<uint64_t> shared_targets;
  for (const PairKeys& key : keys) {
    if (sources.contains(key.source)) shared_sources.insert(key.source);
    if (targets.contains(key.target)) shared_targets.insert(key.target);
  }
  int64_t count = 0;
  for (int64_t i = 0; i < held_out.size(); ++i) {
    count += shared_sources.contains(hash_key(comparison_key(held_out[i].source))) ||
             shared_targets.contains(hash_key(comparison_key(held_out[i].target)));
  }
  return count;
}

}  // namespace lockstep
