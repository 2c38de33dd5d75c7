#include "nn/dropout.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "nn/fused.h"
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
  // The same integer arithmetic as row_bits() and RandomHalves of kernels/isa_math.h.
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

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct FusedAddDropout : Function<FusedAddDropout> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& residual,
                               const torch::Tensor& x, const Dropout& dropout) {
    detail::save_dropout(ctx, dropout);
    ctx->saved_data["type"] = static_cast<int64_t>(x.scalar_type());
    torch::Tensor in = residual.contiguous(), add = x.contiguous();
    torch::Tensor out = torch::empty_like(in);
    detail::with_type(x.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      const AddDropoutArgs<T> args{detail::pointer<float>(in), detail::pointer<T>(add),
                                   detail::pointer<float>(out), in.size(1),
                                   detail::dropout_rows(dropout, in.size(0))};
      const auto kernel = kernels().typed<T>().add_dropout;
      detail::parallel_rows(in.size(0), in.size(1),
                            [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
    });
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    auto type = static_cast<at::ScalarType>(ctx->saved_data["type"].toInt());
    const Dropout dropout = detail::saved_dropout(ctx);
    torch::Tensor d_out = grads[0].contiguous();
    if (!dropout.active() && type == at::kFloat) return {d_out, d_out, {}};
    torch::Tensor d_x = torch::empty(d_out.sizes(), d_out.options().dtype(type));
    detail::with_type(type, [&](auto zero) {
      using T = decltype(zero);
      const AddDropoutBackwardArgs<T> args{detail::pointer<float>(d_out), detail::pointer<T>(d_x),
                                           d_out.size(1),
                                           detail::dropout_rows(dropout, d_out.size(0))};
      const auto kernel = kernels().typed<T>().add_dropout_backward;
      detail::parallel_rows(d_out.size(0), d_out.size(1),
                            [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
    });
    return {d_out, d_x, {}};
  }
};

struct FusedReluDropout : Function<FusedReluDropout> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& x,
                               const Dropout& dropout) {
    torch::Tensor in = x.contiguous();
    torch::Tensor y = torch::empty_like(in);
    const DropoutRows rows = detail::dropout_rows(dropout, in.size(0));
    detail::with_type(x.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      const ReluDropoutArgs<T> args{detail::pointer<T>(in), detail::pointer<T>(y), in.size(1),
                                    rows};
      const auto kernel = kernels().typed<T>().relu_dropout;
      detail::parallel_rows(in.size(0), in.size(1),
                            [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
    });
    ctx->saved_data["scale"] = static_cast<double>(rows.scale);
    ctx->save_for_backward({y});  // kept anyway, as the input of the next product
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const torch::Tensor y = ctx->get_saved_variables()[0];
    torch::Tensor d_y = grads[0].contiguous();
    torch::Tensor d_x = torch::empty_like(d_y);
    detail::with_type(d_y.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      const ReluDropoutBackwardArgs<T> args{
          detail::pointer<T>(d_y), detail::pointer<T>(y), detail::pointer<T>(d_x),
          static_cast<float>(ctx->saved_data["scale"].toDouble())};
      const auto kernel = kernels().typed<T>().relu_dropout_backward;
      detail::parallel_rows(d_y.numel(), 1,
                            [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
    });
    return {d_x, {}};
  }
};

}  // namespace

torch::Tensor add_dropout(const torch::Tensor& residual, const torch::Tensor& x,
                          const Dropout& dropout, const Numerics& numerics) {
  TORCH_CHECK(
      residual.dim() == 2 && residual.sizes() == x.sizes() && residual.scalar_type() == at::kFloat,
      "residual ", residual.sizes(), " and x ", x.sizes(), " must be alike");
  if (detail::runs_fused(numerics, x)) return FusedAddDropout::apply(residual, x, dropout);
  return residual + detail::plain_dropout(x.to(torch::kFloat), dropout);
}

torch::Tensor relu_dropout(const torch::Tensor& x, const Dropout& dropout,
                           const Numerics& numerics) {
  if (detail::runs_fused(numerics, x)) return FusedReluDropout::apply(x, dropout);
  return detail::plain_dropout(torch::relu(x), dropout);
}

}  // namespace lockstep
