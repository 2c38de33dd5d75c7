#include "train/parts/tree_sum.h"

#include <utility>

namespace lockstep {

void TreeSum::take(int64_t leaf, torch::Tensor flat) {
  while (added_ < leaf) add(torch::zeros_like(flat));
  add(flat.clone());
  flat.zero_();
}

void TreeSum::put(torch::Tensor flat) {
  while (added_ < leaves_) add(torch::zeros_like(flat));
  flat.copy_(sums_.back());
}

void TreeSum::add(torch::Tensor leaf) {
  std::size_t level = 0;
  for (; (added_ >> level & 1) != 0; ++level) leaf = std::exchange(sums_[level], {}).add_(leaf);
  if (sums_.size() <= level) sums_.resize(level + 1);
  sums_[level] = std::move(leaf);
  ++added_;
}

}  // namespace lockstep
