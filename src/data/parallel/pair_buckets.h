// An external shuffle: pairs of any number go to disk by the leading bits of a random key and come
// back in the order of their keys, a bucket at a time. The order is that of the keys alone, so it
// depends neither on the number of buckets nor on who wrote in which order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/parallel/sentence_pairs.h"

namespace lockstep {

// Pairs with their keys as bytes, divided among buckets; made on any thread.
class BucketedPairs {
 public:
  explicit BucketedPairs(int64_t buckets) : records_(static_cast<std::size_t>(buckets)) {}
  void add(uint64_t key, PairView pair);
  int64_t pairs() const { return pairs_; }
  const std::vector<std::string>& records() const { return records_; }

 private:
  std::vector<std::string> records_;
  int64_t pairs_ = 0;
};

// A key that equal pairs share, for de-duplication.
uint64_t key_of_text(PairView pair, uint64_t seed);
// A key for every pair, the nth of part `part` of the corpus.
uint64_t key_of_place(uint64_t part, int64_t n, uint64_t seed);

class BucketWriter {
 public:
  // `buckets`: a power of two, at most 512. The folder must exist; bucket files that are there are
  // replaced.
  BucketWriter(const fs::path& folder, int64_t buckets);
  ~BucketWriter();

  void write(const BucketedPairs& pairs);  // throws MachineError
  void finish();                           // all is on disk when it returns

 private:
  class File;
  std::vector<std::unique_ptr<File>> files_;
};

// One bucket in memory, sorted.
class Bucket {
 public:
  // `drop_repeated`: of equal pairs (by text, not only by key) one stays. Throws DataError for a
  // damaged file.
  Bucket(const fs::path& folder, int64_t number, bool drop_repeated);

  const std::vector<PairView>& pairs() const { return pairs_; }
  int64_t repeated() const { return repeated_; }

 private:
  std::string bytes_;  // what the views look at
  std::vector<PairView> pairs_;
  int64_t repeated_ = 0;
};

}  // namespace lockstep
