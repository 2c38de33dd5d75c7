// An external shuffle: any number of pairs is written to disk by the leading bits of a random key
// and read back in the order of the keys, one bucket at a time. The order depends only on the keys,
// not on the number of buckets or on the order of writing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/parallel/sentence_pairs.h"

namespace lockstep {

// Pairs with their keys as bytes, divided into buckets. Any thread may make them.
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

// Returns a key that is the same for equal pairs, for deduplication.
uint64_t key_of_text(PairView pair, uint64_t seed);
// Returns a key for the nth pair of part `part` of the corpus.
uint64_t key_of_place(uint64_t part, int64_t n, uint64_t seed);

class BucketWriter {
 public:
  // `buckets` must be a power of two and at most 512. The folder must exist; existing bucket files
  // are replaced.
  BucketWriter(const fs::path& folder, int64_t buckets);
  ~BucketWriter();

  void write(const BucketedPairs& pairs);  // throws MachineError
  void finish();                           // everything is on disk when it returns

 private:
  class File;
  std::vector<std::unique_ptr<File>> files_;
};

// One bucket in memory, sorted by key.
class Bucket {
 public:
  // With `drop_repeated` only one of several equal pairs (by text, not only by key) is kept. Throws
  // DataError for a damaged file.
  Bucket(const fs::path& folder, int64_t number, bool drop_repeated);

  const std::vector<PairView>& pairs() const { return pairs_; }
  int64_t repeated() const { return repeated_; }

 private:
  std::string bytes_;  // the data that the views refer to
  std::vector<PairView> pairs_;
  int64_t repeated_ = 0;
};

}  // namespace lockstep
