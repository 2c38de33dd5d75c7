// Decides which fetched images are kept: pure bookkeeping, without files.
//
// An image is wanted from the moment it is expected for a coming batch until it was used; what is
// wanted always fits the limit and is never dropped. Of the others those used longest ago are
// dropped first: the order of an epoch is random, so they are the ones that come again last.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace lockstep {

// Not thread-safe. Costs are in bytes.
class CacheBook {
 public:
  CacheBook(std::vector<uint32_t> costs, int64_t limit);  // 0: no limit

  // The next images of coming batches, in their order; an image may come again.
  void expect(int64_t image) { coming_.push_back(image); }
  // Returns the next expected image that there is room for; from now on it is wanted. Nothing when
  // no more are expected or the limit is reached.
  std::optional<int64_t> want_next();

  void arrived(int64_t image);
  // A batch has read it. An image that was not wanted yet is not wanted for this any more, also
  // where it is expected only later: another rank may be ahead of the one that expects for both.
  void used(int64_t image);
  // An image that is being read is not dropped.
  void pin(int64_t image) { ++pins_[image]; }
  void unpin(int64_t image);
  bool is_here(int64_t image) const { return here_[image]; }
  // Returns the next image to drop so that the limit holds, which is then not here any more.
  std::optional<int64_t> drop_next();

  int64_t bytes() const { return bytes_; }
  int64_t wanted_bytes() const { return wanted_bytes_; }

 private:
  struct Use {
    int64_t image;
    uint32_t stamp;  // of the image's newest use
  };
  void release(int64_t image);

  std::vector<uint32_t> costs_;
  int64_t limit_;
  std::vector<bool> here_;
  std::vector<uint16_t> wants_;
  std::vector<uint32_t> stamps_;
  std::deque<int64_t> coming_;
  std::deque<Use> uses_;  // the oldest first; entries with an old stamp do not count
  std::unordered_map<int64_t, int> used_early_, pins_;
  int64_t bytes_ = 0;         // of what is here
  int64_t wanted_bytes_ = 0;  // of what is wanted, here or not
};

}  // namespace lockstep
