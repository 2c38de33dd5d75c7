#include "nn/pooling.h"

#include "nn/fused.h"
#include "nn/plain.h"

namespace lockstep {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

torch::Tensor images_like(at::IntArrayRef sizes, const torch::Tensor& as) {
  return torch::empty(sizes, as.options().memory_format(at::MemoryFormat::ChannelsLast));
}

struct FusedAveragePool : Function<FusedAveragePool> {
  static torch::Tensor forward(AutogradContext* ctx, const torch::Tensor& input) {
    RECORD_FUNCTION("lockstep::average_pool", {});
    const torch::Tensor x = input.contiguous(at::MemoryFormat::ChannelsLast);
    const int64_t pixels = x.size(2) * x.size(3), channels = x.size(1);
    torch::Tensor y = torch::empty({x.size(0), channels}, x.options());
    detail::with_type(x.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      const AveragePoolArgs<T> args{detail::pointer<T>(x), detail::pointer<T>(y), pixels, channels};
      const auto kernel = kernels().typed<T>().average_pool;
      detail::parallel_rows(x.size(0), pixels * channels,
                            [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
    });
    ctx->saved_data["sizes"] = x.sizes().vec();
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    RECORD_FUNCTION("lockstep::average_pool_backward", {});
    const std::vector<int64_t> sizes = ctx->saved_data["sizes"].toIntVector();
    const torch::Tensor d_y = grads[0].contiguous();
    torch::Tensor d_x = images_like(sizes, d_y);
    const int64_t pixels = sizes[2] * sizes[3];
    detail::with_type(d_y.scalar_type(), [&](auto zero) {
      using T = decltype(zero);
      const AveragePoolBackwardArgs<T> args{detail::pointer<T>(d_y), detail::pointer<T>(d_x),
                                            pixels, sizes[1]};
      const auto kernel = kernels().typed<T>().average_pool_backward;
      detail::parallel_rows(sizes[0], pixels * sizes[1],
                            [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
    });
    return {d_x};
  }
};

void check(const torch::Tensor& x, const Numerics& numerics) {
  TORCH_CHECK(x.dim() == 4 && x.numel() > 0 && x.scalar_type() == numerics.compute,
              "pooling: x is ", x.scalar_type(), " ", x.sizes(), ", expected ", numerics.compute,
              " [n, channels, height, width]");
}

}  // namespace

torch::Tensor max_pool(const torch::Tensor& x, const Numerics& numerics) {
  check(x, numerics);
  return at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
}

torch::Tensor average_pool(const torch::Tensor& x, const Numerics& numerics) {
  check(x, numerics);
  if (detail::runs_fused(numerics, FusedOperation::kPooling, x)) return FusedAveragePool::apply(x);
  return x.mean({2, 3}, /*keepdim=*/false, at::kFloat).to(numerics.compute);
}

}  // namespace lockstep
