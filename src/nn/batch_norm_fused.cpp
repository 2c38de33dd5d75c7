#include "nn/batch_norm_fused.h"

#include <cmath>

#include "nn/batch_norm_gpu.h"
#include "nn/fused.h"

namespace lockstep::detail {
namespace {

constexpr int64_t kBlockRows = 256;  // sums are fp32 within a block, fp64 over blocks

int64_t blocks_of(int64_t rows) { return (rows + kBlockRows - 1) / kBlockRows; }

// Calls f(block, begin, end) for every block of rows, in parallel.
template <class F>
void for_blocks(int64_t rows, int64_t width, const F& f) {
  parallel_rows(blocks_of(rows), kBlockRows * width, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      f(block, block * kBlockRows, std::min(rows, (block + 1) * kBlockRows));
    }
  });
}

// The mean of each channel's values and the sum of their squares around it, on this rank, in fp64.
struct Moments {
  std::vector<double> mean, squares;
};

PixelSums measure(const torch::Tensor& x) {
  const int64_t rows = x.size(0), channels = x.size(1), blocks = blocks_of(rows);
  PixelSums out;
  out.values = torch::empty({3, blocks, channels}, at::kFloat);
  out.count.resize(blocks);
  float* first = pointer<float>(out.values);
  float* sum = first + blocks * channels;
  float* squares = sum + blocks * channels;
  with_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const auto kernel = kernels().typed<T>().batch_norm_sums;
    for_blocks(rows, channels, [&](int64_t block, int64_t begin, int64_t end) {
      const int64_t at = block * channels;
      kernel({pointer<T>(x), channels, first + at, sum + at, squares + at}, begin, end);
      out.count[block] = end - begin;
    });
  });
  return out;
}

// Merges the blocks one after the other (Chan, Golub and LeVeque 1979).
Moments joined(const PixelSums& sums) {
  const int64_t blocks = sums.values.size(1), channels = sums.values.size(2);
  Moments all{std::vector<double>(channels), std::vector<double>(channels)};
  double before = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    if (sums.count[block] == 0) continue;
    const auto count = static_cast<double>(sums.count[block]);
    const double share = count / (before + count), weight = before * share;
    const float* first = pointer<float>(sums.values) + block * channels;
    const float *sum = first + blocks * channels, *squares = sum + blocks * channels;
    for (int64_t c = 0; c < channels; ++c) {
      const double own = static_cast<double>(sum[c]) / count;
      const double distance = static_cast<double>(first[c]) + own - all.mean[c];
      all.squares[c] += static_cast<double>(squares[c]) - own * static_cast<double>(sum[c]) +
                        distance * distance * weight;
      all.mean[c] += distance * share;
    }
    before += count;
  }
  return all;
}

// Replaces the values by their sums over the ranks.
void sum_over(const BatchNormMode& mode, std::vector<double>& values) {
  torch::Tensor t = torch::from_blob(values.data(), {static_cast<int64_t>(values.size())},
                                     torch::TensorOptions().dtype(at::kDouble))
                        .clone();
  mode.sum_over_ranks(t);
  std::copy_n(t.const_data_ptr<double>(), values.size(), values.begin());
}

// Merges the ranks' moments into `own`; returns the count over all ranks.
double join_ranks(Moments& own, double count, const BatchNormMode& mode) {
  const std::size_t channels = own.mean.size();
  std::vector<double> sums(2 * channels + 1);
  for (std::size_t c = 0; c < channels; ++c) {
    sums[c] = own.mean[c] * count;
    sums[channels + c] = own.squares[c] + own.mean[c] * own.mean[c] * count;
  }
  sums[2 * channels] = count;
  sum_over(mode, sums);
  const double all = sums[2 * channels];
  for (std::size_t c = 0; c < channels; ++c) {
    own.mean[c] = sums[c] / all;
    own.squares[c] = std::max(0.0, sums[channels + c] - own.mean[c] * own.mean[c] * all);
  }
  return all;
}

void move_running(const BatchNorm& norm, const Moments& moments, double count) {
  float* mean = pointer<float>(norm.running_mean->value);
  float* variance = pointer<float>(norm.running_variance->value);
  const double m = norm.momentum;
  for (std::size_t c = 0; c < moments.mean.size(); ++c) {
    const double unbiased = moments.squares[c] / (count - 1);
    mean[c] = static_cast<float>((1 - m) * mean[c] + m * moments.mean[c]);
    variance[c] = static_cast<float>((1 - m) * variance[c] + m * unbiased);
  }
}

struct ChannelSums {
  std::vector<double> g, product;  // of g and of g * (x - mean)
};

ChannelSums backward_sums(const BatchNormBackward& in, const BatchNormState& state,
                          const BatchNorm& norm, const torch::Tensor& g) {
  const int64_t rows = in.x.size(0), channels = in.x.size(1), blocks = blocks_of(rows);
  const torch::Tensor partial = torch::empty({2, blocks, channels}, at::kFloat);
  float* sum = pointer<float>(partial);
  float* product = sum + blocks * channels;
  with_type(in.x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const BatchNormBackwardSumsArgs<T> args{{pointer<T>(in.d_y), pointer<T>(in.y), in.relu},
                                            pointer<T>(in.x),
                                            pointer<float>(state.mean),
                                            pointer<float>(state.scale),
                                            pointer<float>(norm.bias->value),
                                            pointer<T>(g),
                                            nullptr,
                                            nullptr,
                                            channels};
    const auto kernel = kernels().typed<T>().batch_norm_backward_sums;
    for_blocks(rows, channels, [&](int64_t block, int64_t begin, int64_t end) {
      BatchNormBackwardSumsArgs<T> own = args;
      own.sum = sum + block * channels;
      own.product = product + block * channels;
      kernel(own, begin, end);
    });
  });
  ChannelSums all{std::vector<double>(channels), std::vector<double>(channels)};
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t c = 0; c < channels; ++c) {
      all.g[c] += static_cast<double>(sum[block * channels + c]);
      all.product[c] += static_cast<double>(product[block * channels + c]);
    }
  }
  return all;
}

void add_norm_gradients(const ChannelSums& sums, const BatchNormState& state,
                        const BatchNorm& norm) {
  const float* rstd = pointer<float>(state.rstd);
  if (norm.weight->value.requires_grad()) {
    float* gradient = pointer<float>(gradient_of(norm.weight->value));
    for (std::size_t c = 0; c < sums.g.size(); ++c) {
      gradient[c] += static_cast<float>(sums.product[c] * static_cast<double>(rstd[c]));
    }
  }
  if (norm.bias->value.requires_grad()) {
    float* gradient = pointer<float>(gradient_of(norm.bias->value));
    for (std::size_t c = 0; c < sums.g.size(); ++c) gradient[c] += static_cast<float>(sums.g[c]);
  }
}

}  // namespace

BatchNormState batch_norm_state(const torch::Tensor& x, const PixelSums& sums,
                                const BatchNorm& norm, const BatchNormMode& mode) {
  RECORD_FUNCTION("lockstep::batch_norm_state", {});
  if (!x.is_cpu()) return gpu_batch_norm_state(x, norm, mode);
  const int64_t channels = x.size(1);
  BatchNormState state;
  const torch::Tensor all = torch::empty({3, channels}, at::kFloat);
  state.mean = all[0];
  state.scale = all[1];
  state.rstd = all[2];
  float *mean = pointer<float>(state.mean), *scale = pointer<float>(state.scale),
        *rstd = pointer<float>(state.rstd);
  const float* weight = pointer<float>(norm.weight->value);
  auto finish = [&](int64_t c, double center, double variance) {
    const double inverse = 1 / std::sqrt(variance + norm.epsilon);
    mean[c] = static_cast<float>(center);
    rstd[c] = static_cast<float>(inverse);
    scale[c] = static_cast<float>(inverse * static_cast<double>(weight[c]));
  };
  if (!mode.training) {
    const float* running_mean = pointer<float>(norm.running_mean->value);
    const float* variance = pointer<float>(norm.running_variance->value);
    for (int64_t c = 0; c < channels; ++c) finish(c, running_mean[c], variance[c]);
    return state;
  }
  const torch::Tensor rows = pixel_rows(x);
  if (!mode.sum_over_ranks) check_values_a_channel(rows.size(0), norm, x);
  Moments moments = joined(sums.values.defined() ? sums : measure(rows));
  state.count = static_cast<double>(rows.size(0));
  if (mode.sum_over_ranks) {
    state.count = join_ranks(moments, state.count, mode);
    check_values_a_channel(static_cast<int64_t>(state.count), norm, x);
  }
  for (int64_t c = 0; c < channels; ++c) {
    finish(c, moments.mean[c], moments.squares[c] / state.count);
  }
  move_running(norm, moments, state.count);
  return state;
}

torch::Tensor batch_norm_rows(const torch::Tensor& x, const BatchNormState& state,
                              const torch::Tensor& bias, const torch::Tensor& residual, bool relu) {
  RECORD_FUNCTION("lockstep::batch_norm_rows", {});
  if (!x.is_cpu()) return gpu_batch_norm_rows(x, state, bias, residual, relu);
  torch::Tensor y = torch::empty_like(x);
  with_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const BatchNormArgs<T> args{pointer<T>(x),
                                pointer<float>(state.mean),
                                pointer<float>(state.scale),
                                pointer<float>(bias),
                                pointer<T>(residual),
                                pointer<T>(y),
                                x.size(1),
                                relu};
    const auto kernel = kernels().typed<T>().batch_norm;
    parallel_rows(x.size(0), x.size(1),
                  [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
  });
  return y;
}

BatchNormGradients batch_norm_backward(const BatchNormBackward& in, const BatchNormState& state,
                                       const BatchNorm& norm, const BatchNormMode& mode) {
  RECORD_FUNCTION("lockstep::batch_norm_backward", {});
  if (!in.x.is_cpu()) return gpu_batch_norm_backward(in, state, norm, mode);
  const int64_t channels = in.x.size(1);
  BatchNormGradients out;
  // Without a ReLU the residual's gradient is d_y itself. With one it is g, which is then read
  // instead of d_y and y.
  const bool writes_g = in.wants_residual && in.relu;
  if (in.wants_residual) out.d_residual = writes_g ? torch::empty_like(in.d_y) : in.d_y;
  ChannelSums sums = backward_sums(in, state, norm, writes_g ? out.d_residual : torch::Tensor());
  add_norm_gradients(sums, state, norm);
  if (mode.sum_over_ranks && state.count > 0) {
    std::vector<double> both = sums.g;
    both.insert(both.end(), sums.product.begin(), sums.product.end());
    sum_over(mode, both);
    std::copy_n(both.begin(), channels, sums.g.begin());
    std::copy_n(both.begin() + channels, channels, sums.product.begin());
  }
  const torch::Tensor terms = torch::zeros({2, channels}, at::kFloat);
  float *slope = pointer<float>(terms), *offset = slope + channels;
  if (state.count > 0) {
    const float *scale = pointer<float>(state.scale), *rstd = pointer<float>(state.rstd);
    for (int64_t c = 0; c < channels; ++c) {
      const double s = -static_cast<double>(scale[c]) / state.count, r = rstd[c];
      slope[c] = static_cast<float>(s * r * r * sums.product[c]);
      offset[c] = static_cast<float>(s * sums.g[c]);
    }
  }
  out.d_x = torch::empty_like(in.x);
  with_type(in.x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const torch::Tensor& from = writes_g ? out.d_residual : in.d_y;
    const BatchNormBackwardArgs<T> args{{pointer<T>(from), pointer<T>(in.y), in.relu && !writes_g},
                                        pointer<T>(in.x),
                                        pointer<float>(state.mean),
                                        pointer<float>(state.scale),
                                        pointer<float>(norm.bias->value),
                                        slope,
                                        offset,
                                        pointer<T>(out.d_x),
                                        channels};
    const auto kernel = kernels().typed<T>().batch_norm_backward;
    parallel_rows(in.x.size(0), channels,
                  [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
  });
  return out;
}

}  // namespace lockstep::detail
