#include "models/candidates.h"

#include <algorithm>
#include <limits>

namespace lockstep {

Candidates best_candidates(const torch::Tensor& logits, int64_t per_row,
                           const std::vector<int32_t>& excluded) {
  torch::Tensor log_probability = logits.to(torch::kFloat).log_softmax(1);
  for (int32_t id : excluded)
    log_probability.select(1, id).fill_(-std::numeric_limits<float>::infinity());
  const int64_t kept = std::min(per_row, logits.size(1));
  auto [values, ids] = log_probability.topk(kept, 1);
  values = values.cpu().contiguous();
  ids = ids.cpu().contiguous();
  Candidates out = no_candidates(logits.size(0), per_row);
  for (int64_t row = 0; row < logits.size(0); ++row) {
    for (int64_t i = 0; i < kept; ++i) {
      const std::size_t at = static_cast<std::size_t>(row * per_row + i);
      out.log_probability[at] = values.const_data_ptr<float>()[row * kept + i];
      out.id[at] = static_cast<int32_t>(ids.const_data_ptr<int64_t>()[row * kept + i]);
    }
  }
  return out;
}

}  // namespace lockstep
