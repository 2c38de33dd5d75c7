#include "nn/embedding.h"

#include <cmath>

#include "nn/plain.h"

namespace lockstep {

torch::Tensor sinusoidal_positions(int64_t longest, int64_t width, torch::Device device) {
  torch::NoGradGuard no_grad;
  // In double: the angles grow to the length of the longest sentence, fp32 would lose digits there.
  torch::Tensor exponent = torch::arange((width + 1) / 2, torch::kDouble) * (2.0 / width);
  torch::Tensor angle = torch::arange(longest, torch::kDouble).unsqueeze(1) /
                        torch::pow(10000.0, exponent).unsqueeze(0);  // [longest, (width + 1) / 2]
  torch::Tensor both = torch::stack({angle.sin(), angle.cos()}, 2).flatten(1).narrow(1, 0, width);
  return both.to(torch::kFloat).contiguous().to(device);
}

torch::Tensor embed(const EmbeddingInput& input, const Parameter& table,
                    const torch::Tensor& positions, const Dropout& dropout,
                    const Numerics& numerics) {
  double scale = std::sqrt(static_cast<double>(table.shape[1]));
  torch::Tensor sum =
      at::embedding(table.value, input.tokens) * scale + positions.index_select(0, input.position);
  return detail::plain_dropout(sum, dropout);
}

}  // namespace lockstep
