#include "nn/dropout.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "nn/plain.h"

namespace lockstep {
namespace {

torch::Tensor times(const torch::Tensor& x, uint64_t factor) {  // modulo 2^64
  return x * static_cast<int64_t>(factor);
}

torch::Tensor right(const torch::Tensor& x, int bits) {  // logical shift
  return x.bitwise_right_shift(bits).bitwise_and_((int64_t{1} << (64 - bits)) - 1);
}

}  // namespace

uint64_t dropout_key(uint64_t seed, int64_t step, int64_t site) {
  TORCH_CHECK(step >= 0 && step < (int64_t{1} << 48) && site >= 0 && site < (1 << 16),
              "dropout key out of range: step ", step, ", site ", site);
  return mix64(mix64(seed + 0x9e3779b97f4a7c15u) ^
               (static_cast<uint64_t>(step) << 16 | static_cast<uint64_t>(site)));
}

torch::Tensor dropout_mask(const Dropout& dropout, int64_t width) {
  constexpr int64_t kLow32 = 0xffffffff;
  // The same integer arithmetic as row_bits() and mixed_word() of kernels/scalar_math.h.
  torch::Tensor row = times(dropout.rows, 0x9e3779b97f4a7c15u) + static_cast<int64_t>(dropout.key);
  row = times(row ^ right(row, 30), 0xbf58476d1ce4e5b9u);
  row = times(row ^ right(row, 27), 0x94d049bb133111ebu);
  row = (row ^ right(row, 31)).unsqueeze(1);
  torch::Tensor pair = torch::arange((width + 1) / 2, dropout.rows.options()).unsqueeze(0);
  torch::Tensor h = (row + pair).bitwise_and(kLow32);  // [rows, (width + 1) / 2]
  h = times(h ^ right(h, 16), 0x7feb352du).bitwise_and(kLow32) ^ right(row, 32);
  h = times(h ^ right(h, 15), 0x846ca68bu).bitwise_and(kLow32);
  h = h ^ right(h, 16);
  torch::Tensor halves = torch::stack({h.bitwise_and(0xffff), right(h, 16)}, 2).flatten(1);
  return halves.narrow(1, 0, width) >= static_cast<int64_t>(detail::dropout_threshold(dropout.p));
}

namespace detail {

uint32_t dropout_threshold(double p) {
  TORCH_CHECK(p >= 0 && p < 1, "dropout probability ", p);
  return static_cast<uint32_t>(std::min(65535L, std::lround(p * 65536)));
}

float dropout_scale(double p) {
  return static_cast<float>(65536.0 / (65536.0 - dropout_threshold(p)));
}

torch::Tensor plain_dropout(const torch::Tensor& x, const Dropout& dropout) {
  if (!dropout.active()) return x;
  torch::Tensor factor = dropout_mask(dropout, x.size(1)).to(torch::kFloat) *
                         dropout_scale(dropout.p);  // [rows, width]
  return (x.to(torch::kFloat) * factor).to(x.scalar_type());
}

}  // namespace detail

}  // namespace lockstep
