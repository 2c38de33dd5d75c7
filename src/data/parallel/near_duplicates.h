// Finds sentences that are copies or near copies of each other, so that none is on both sides of a
// split.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lockstep {

// Returns what remains of a sentence when case, digits, punctuation and spacing do not count:
// Unicode's NFKC_Casefold, only letters and marks, one space between words. Sentences with equal
// keys are copies. A sentence without any letter is its own key. REQUIRES: valid UTF-8.
std::string comparison_key(std::string_view sentence);

// Returns the distinct character trigrams of a key with a space before and after it, as sorted
// hashes.
std::vector<uint32_t> trigrams(std::string_view key);

// Returns |a and b| / |a or b| of two sorted sets; 1 for two empty sets.
double jaccard(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b);

// An index of a few thousand sentences against which many are compared. The result is exact, not
// probabilistic: two sets that are similar enough share one of their rarest elements (prefix
// filter: Chaudhuri, Ganti, Kaushik 2006; Bayardo, Ma, Srikant 2007, "Scaling up all pairs
// similarity search"), and every candidate is compared.
class NearCopyIndex {
 public:
  // Sentences are near copies if their trigrams have a Jaccard index of at least `threshold` (0 <
  // threshold <= 1). `frequencies` speeds up the search and does not change its result.
  NearCopyIndex(double threshold, std::vector<uint32_t> frequencies);

  // The number of buckets of a table of trigram frequencies; bucket_of(gram) is in [0, kBuckets).
  static constexpr std::size_t kBuckets = 1 << 20;
  static std::size_t bucket_of(uint32_t gram) { return gram & (kBuckets - 1); }

  void add(std::vector<uint32_t> grams);
  // Returns whether an added set is a near copy of this one. Several threads may call it.
  bool has_near_copy(const std::vector<uint32_t>& grams) const;

 private:
  std::vector<uint32_t> prefix(const std::vector<uint32_t>& grams) const;
  bool is_near(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) const;

  double threshold_;
  std::vector<uint32_t> frequencies_;
  std::vector<std::vector<uint32_t>> sets_;
  std::unordered_map<uint32_t, std::vector<int32_t>> having_;  // gram in the prefix -> sets
};

// Disjoint sets of indices (union-find with path halving).
class DisjointSets {
 public:
  explicit DisjointSets(int64_t size);
  int64_t find(int64_t i);  // the smallest member of the set that contains i
  void unite(int64_t a, int64_t b);

 private:
  std::vector<int64_t> parent_;
};

}  // namespace lockstep
