#include "decode/decoding_batches.h"

#include <algorithm>
#include <atomic>

namespace lockstep {
namespace {

// Makes batches, the longest first: they take the most time, and so threads that share them end at
// about the same time.
std::vector<std::vector<std::size_t>> make_batches(const std::vector<std::vector<int32_t>>& sources,
                                                   std::size_t batch_tokens) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i].empty()) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sources[a].size() > sources[b].size();
  });
  std::vector<std::vector<std::size_t>> batches;
  std::size_t longest = 0;
  for (std::size_t i : order) {
    if (batches.empty() || (batches.back().size() + 1) * longest > batch_tokens) {
      batches.emplace_back();
      longest = sources[i].size() + 1;
    }
    batches.back().push_back(i);
  }
  return batches;
}

}  // namespace

void decode_in_batches(const DecodingModel& model, const std::vector<std::vector<int32_t>>& sources,
                       int64_t batch_tokens,
                       const std::function<void(const std::vector<std::size_t>&)>& decode) {
  const auto batches = make_batches(sources, static_cast<std::size_t>(batch_tokens));
  const int64_t workers = std::min<int64_t>(model.threads.count(), std::ssize(batches));
  if (workers <= 1) {
    for (const std::vector<std::size_t>& batch : batches) decode(batch);
    return;
  }
  std::atomic<std::size_t> next{0};
  model.threads.split(0, workers, 1, [&](int64_t, int64_t) {
    for (std::size_t i = next++; i < batches.size(); i = next++) decode(batches[i]);
  });
}

}  // namespace lockstep
