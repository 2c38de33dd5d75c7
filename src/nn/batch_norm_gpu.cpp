#include "nn/batch_norm_gpu.h"

#include "nn/fused.h"
#include "nn/gpu_blocks.h"

namespace lockstep::detail {
namespace {

// Returns the sums of the blocks' sums, fp64 [2 * channels], and where `origin` is defined the
// number of pixels behind them.
template <class T>
torch::Tensor totals_of(const GpuBlocks& blocks, const torch::Tensor& origin) {
  const int64_t channels = blocks.blocks.channels;
  const torch::Tensor totals = torch::empty({2 * channels + (origin.defined() ? 1 : 0)},
                                            blocks.sums.options().dtype(at::kDouble));
  on_gpu(totals)->typed<T>().channel_totals(
      {pointer<T>(origin), blocks.blocks, totals.data_ptr<double>()}, channels);
  return totals;
}

torch::Tensor moments_of(const torch::Tensor& rows) {
  torch::Tensor totals;
  with_type(rows.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const GpuBlocks blocks = gpu_blocks(rows, {rows}, /*sums=*/true);
    on_gpu(rows)->typed<T>().pixel_sums({pointer<T>(rows), pointer<T>(rows), blocks.blocks},
                                        blocks.blocks.count);
    totals = totals_of<T>(blocks, rows);  // its first row is the origin
  });
  return totals;
}

}  // namespace

BatchNormState gpu_batch_norm_state(const torch::Tensor& x, const BatchNorm& norm,
                                    const BatchNormMode& mode) {
  const torch::Tensor rows = pixel_rows(x);
  const int64_t channels = rows.size(1);
  BatchNormState state;
  if (mode.training) {
    if (!mode.sum_over_ranks) check_values_a_channel(rows.size(0), norm, x);
    state.totals = moments_of(rows);
    if (mode.sum_over_ranks) {
      mode.sum_over_ranks(state.totals);
      if (rows.size(0) < 2) {
        check_values_a_channel(state.totals[2 * channels].item().to<int64_t>(), norm, x);
      }
    }
  }
  const torch::Tensor all = torch::empty({3, channels}, x.options().dtype(at::kFloat));
  state.mean = all[0];
  state.scale = all[1];
  state.rstd = all[2];
  on_gpu(x)->batch_norm_moments(
      {pointer<double>(state.totals), channels, norm.momentum, norm.epsilon,
       pointer<float>(norm.weight->value), pointer<float>(norm.running_mean->value),
       pointer<float>(norm.running_variance->value), pointer<float>(state.mean),
       pointer<float>(state.scale), pointer<float>(state.rstd)},
      channels);
  return state;
}

torch::Tensor gpu_batch_norm_rows(const torch::Tensor& x, const BatchNormState& state,
                                  const torch::Tensor& bias, const torch::Tensor& residual,
                                  bool relu) {
  torch::Tensor y = torch::empty_like(x);
  with_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const GpuBlocks blocks = gpu_blocks(x, {x, residual, y}, /*sums=*/false);
    const BatchNormArgs<T> args{pointer<T>(x),
                                pointer<float>(state.mean),
                                pointer<float>(state.scale),
                                pointer<float>(bias),
                                pointer<T>(residual),
                                pointer<T>(y),
                                x.size(1),
                                relu};
    on_gpu(x)->typed<T>().batch_norm({args, blocks.blocks}, blocks.blocks.count);
  });
  return y;
}

BatchNormGradients gpu_batch_norm_backward(const BatchNormBackward& in, const BatchNormState& state,
                                           const BatchNorm& norm, const BatchNormMode& mode) {
  const int64_t channels = in.x.size(1);
  const torch::Tensor terms = torch::empty({2, channels}, in.x.options().dtype(at::kFloat));
  float *slope = pointer<float>(terms), *offset = slope + channels;
  BatchNormGradients out;
  out.d_x = torch::empty_like(in.x);
  const bool writes_g = in.wants_residual && in.relu;
  if (in.wants_residual) out.d_residual = writes_g ? torch::empty_like(in.d_y) : in.d_y;
  with_type(in.x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const torch::Tensor g = writes_g ? out.d_residual : torch::Tensor();
    const float *mean = pointer<float>(state.mean), *scale = pointer<float>(state.scale),
                *bias = pointer<float>(norm.bias->value);
    const auto& gpu = on_gpu(in.x)->typed<T>();
    const GpuBlocks summed = gpu_blocks(in.x, {in.x, in.d_y, in.y, g}, /*sums=*/true);
    gpu.batch_norm_backward_sums({{{pointer<T>(in.d_y), pointer<T>(in.y), in.relu},
                                   pointer<T>(in.x),
                                   mean,
                                   scale,
                                   bias,
                                   pointer<T>(g),
                                   nullptr,
                                   nullptr,
                                   channels},
                                  summed.blocks},
                                 summed.blocks.count);
    const torch::Tensor own = totals_of<T>(summed, {});
    torch::Tensor all = own;
    if (mode.sum_over_ranks && state.totals.defined()) {
      all = own.clone();
      mode.sum_over_ranks(all);
    }
    const double* count = pointer<double>(state.totals);
    on_gpu(in.x)->batch_norm_terms(
        {pointer<double>(own), pointer<double>(all),
         count == nullptr ? nullptr : count + 2 * channels, channels, scale,
         pointer<float>(state.rstd), gradient_if_wanted(norm.weight->value),
         gradient_if_wanted(norm.bias->value), slope, offset},
        channels);
    const torch::Tensor& from = writes_g ? g : in.d_y;
    const GpuBlocks blocks = gpu_blocks(in.x, {in.x, from, in.y, out.d_x}, /*sums=*/false);
    gpu.batch_norm_backward({{{pointer<T>(from), pointer<T>(in.y), in.relu && !writes_g},
                              pointer<T>(in.x),
                              mean,
                              scale,
                              bias,
                              slope,
                              offset,
                              pointer<T>(out.d_x),
                              channels},
                             blocks.blocks},
                            blocks.blocks.count);
  });
  return out;
}

}  // namespace lockstep::detail
