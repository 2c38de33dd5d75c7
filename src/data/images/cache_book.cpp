#include "data/images/cache_book.h"

#include <utility>

namespace lockstep {

namespace {

// Counts down; an entry of zero goes.
bool take_one(std::unordered_map<int64_t, int>& counts, int64_t image) {
  auto found = counts.find(image);
  if (found == counts.end()) return false;
  if (--found->second == 0) counts.erase(found);
  return true;
}

}  // namespace

CacheBook::CacheBook(std::vector<uint32_t> costs, int64_t limit)
    : costs_(std::move(costs)),
      limit_(limit),
      here_(costs_.size()),
      wants_(costs_.size()),
      stamps_(costs_.size()) {}

std::optional<int64_t> CacheBook::want_next() {
  while (!coming_.empty()) {
    const int64_t image = coming_.front();
    if (!take_one(used_early_, image)) {
      const int64_t more = wants_[image] > 0 ? 0 : costs_[image];
      if (limit_ > 0 && wanted_bytes_ + more > limit_) return std::nullopt;
      wanted_bytes_ += more;
      ++wants_[image];
      coming_.pop_front();
      return image;
    }
    coming_.pop_front();
  }
  return std::nullopt;
}

void CacheBook::arrived(int64_t image) {
  if (here_[image]) return;
  here_[image] = true;
  bytes_ += costs_[image];
  if (wants_[image] == 0) release(image);
}

void CacheBook::used(int64_t image) {
  if (wants_[image] > 0) {
    if (--wants_[image] > 0) return;
    wanted_bytes_ -= costs_[image];
  } else {
    ++used_early_[image];
  }
  if (here_[image]) release(image);
}

void CacheBook::unpin(int64_t image) { take_one(pins_, image); }

// Makes the image the last in the order of dropping.
void CacheBook::release(int64_t image) {
  if (limit_ > 0) uses_.push_back({image, ++stamps_[image]});
}

std::optional<int64_t> CacheBook::drop_next() {
  // What is read right now keeps its place for the next call.
  std::vector<Use> kept;
  std::optional<int64_t> out;
  while (limit_ > 0 && bytes_ > limit_ && !out && !uses_.empty()) {
    const Use use = uses_.front();
    uses_.pop_front();
    if (!here_[use.image] || use.stamp != stamps_[use.image] || wants_[use.image] > 0) continue;
    if (pins_.contains(use.image)) {
      kept.push_back(use);
      continue;
    }
    out = use.image;
  }
  uses_.insert(uses_.begin(), kept.begin(), kept.end());
  if (out) {
    here_[*out] = false;
    bytes_ -= costs_[*out];
  }
  return out;
}

}  // namespace lockstep
