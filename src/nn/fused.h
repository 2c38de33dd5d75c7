// Connects tensors with the kernels: pointers, types, threads. Only the fused paths of nn/ use it.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <torch/autograd.h>
#include <torch/types.h>

#include "kernels/kernel_table.h"
#include "nn/dropout.h"
#include "nn/linear.h"
#include "nn/plain.h"

namespace lockstep::detail {

// Calls f with a value of the kernel's element type: float, Bf16 or Fp16.
template <class F>
void with_type(at::ScalarType type, const F& f) {
  switch (type) {
    case at::kFloat:
      return f(float{});
    case at::kBFloat16:
      return f(Bf16{});
    case at::kHalf:
      return f(Fp16{});
    default:
      TORCH_CHECK(false, "no fused kernel for ", type);
  }
}

template <class T>
T* pointer(const torch::Tensor& t) {
  static_assert(sizeof(Bf16) == sizeof(at::BFloat16));
  if (!t.defined()) return nullptr;
  TORCH_CHECK(t.element_size() == sizeof(T), "a tensor of ", t.scalar_type(),
              " read with elements of ", sizeof(T), " bytes");
  return static_cast<T*>(t.data_ptr());
}

// Splits n rows of `width` elements between threads; small work stays in one thread. The result of
// f(begin, end) must not depend on where the rows are cut.
template <class F>
void parallel_rows(int64_t n, int64_t width, const F& f) {
  constexpr int64_t kElements = 16384;  // microseconds: several times what waking a thread costs
  at::parallel_for(0, n, std::max<int64_t>(1, kElements / std::max<int64_t>(1, width)), f);
}

// The kernels of the GPU where `x` is, whichever GPU is the thread's own: on_gpu(x)->slope(...).
class OnGpu {
 public:
  explicit OnGpu(const torch::Tensor& x) : guard_(x.device()) {}
  const GpuKernels* operator->() const { return gpu_kernels(); }

 private:
  c10::DeviceGuard guard_;
};
inline OnGpu on_gpu(const torch::Tensor& x) { return OnGpu(x); }

template <class T, class Args>
using CpuKernelOf = void (*TypedKernels<T>::*)(const Args&, int64_t begin, int64_t end);
template <class T, class Args>
using GpuKernelOf = GpuKernel<Args> TypedGpuKernels<T>::*;

// Runs a kernel over n rows of `width` elements, on the CPU or the GPU, where `x` is.
template <class T, class Args>
void run_rows(const torch::Tensor& x, int64_t n, int64_t width, const Args& args,
              CpuKernelOf<T, Args> cpu, GpuKernelOf<T, Args> gpu) {
  if (!x.is_cpu()) return (detail::on_gpu(x)->typed<T>().*gpu)(args, n);
  const auto kernel = kernels().typed<T>().*cpu;
  parallel_rows(n, width, [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
}

// The kernels' view of a dropout over the rows of `x`; `dropout` must outlive it.
inline DropoutRows dropout_rows(const Dropout& dropout, const torch::Tensor& x) {
  DropoutRows view;
  if (!dropout.active()) return view;
  TORCH_CHECK(dropout.rows.defined() && dropout.rows.scalar_type() == at::kLong &&
                  dropout.rows.is_contiguous() && dropout.rows.device() == x.device() &&
                  dropout.rows.numel() == x.size(0),
              "dropout over ", x.size(0), " rows needs as many int64 row keys, where they are");
  view.rows = dropout.rows.const_data_ptr<int64_t>();
  view.key = dropout.key;
  view.threshold = dropout_threshold(dropout.p);
  view.scale = dropout_scale(dropout.p);
  return view;
}

// These keep a Dropout between forward and backward pass.
inline void save_dropout(torch::autograd::AutogradContext* ctx, const Dropout& dropout) {
  ctx->saved_data["p"] = dropout.p;
  if (!dropout.active()) return;
  ctx->saved_data["key"] = static_cast<int64_t>(dropout.key);
  ctx->saved_data["rows"] = dropout.rows;
}
inline Dropout saved_dropout(torch::autograd::AutogradContext* ctx) {
  Dropout dropout;
  dropout.p = ctx->saved_data["p"].toDouble();
  if (!dropout.active()) return dropout;
  dropout.key = static_cast<uint64_t>(ctx->saved_data["key"].toInt());
  dropout.rows = ctx->saved_data["rows"].toTensor();
  return dropout;
}

// Returns the gradient tensor of a weight, to which a backward pass adds. TORCH_CHECK fails when it
// was never allocated.
inline torch::Tensor gradient_of(const torch::Tensor& value) {
  torch::Tensor gradient = value.grad();
  TORCH_CHECK(
      gradient.defined() && gradient.is_contiguous() && gradient.scalar_type() == at::kFloat,
      "a weight without a dense fp32 gradient: Parameters::allocate makes it");
  return gradient;
}

// Returns where its numbers are; null when the weight wants none.
inline float* gradient_if_wanted(const torch::Tensor& value) {
  return value.requires_grad() ? pointer<float>(gradient_of(value)) : nullptr;
}

// gradient [out, in] += d_y^T x, for d_y [rows, out] and x [rows, in] in the compute type.
void add_weight_gradient(torch::Tensor gradient, const torch::Tensor& d_y, const torch::Tensor& x);
// gradient [width] += sum over the rows of x [rows, width].
void add_column_sums(torch::Tensor gradient, const torch::Tensor& x);

// What a product x W^T + b reads: weight and bias in the compute type; the bias may be undefined.
// Autograd does not see these tensors but the fp32 values, to whose gradients backward adds.
struct LinearTensors {
  torch::Tensor used, used_bias;
};
LinearTensors linear_tensors(const Linear& layer, at::ScalarType compute);

// TORCH_CHECK fails unless x is [tokens, in] in the compute type.
void check_linear(const torch::Tensor& x, const Linear& layer, const Numerics& numerics);

// Returns x W^T + b, dense; b [out] in the same type, or undefined.
torch::Tensor product_with_bias(const torch::Tensor& x, const torch::Tensor& weight,
                                const torch::Tensor& bias);

// Given d_y, and x, used weight, weight and bias (the first four of `saved`): adds the gradients of
// weight and bias to theirs and returns d_x, which is undefined unless `wants_x`.
torch::Tensor linear_backward(const torch::Tensor& d_y, const std::vector<torch::Tensor>& saved,
                              bool wants_x);

struct NormBackward {
  torch::Tensor d_y;  // in the compute type
  torch::Tensor x, weight, bias, mean, rstd;
  torch::Tensor d_residual;  // is added to d_x; may be undefined
  torch::Tensor d_x;         // the result, fp32
};

struct NoRows {
  void operator()(int64_t, int64_t) const {}
};

// Rows whose gradients of weight and bias are summed before those of others are added.
inline constexpr int64_t kNormBlock = 64;

// The arguments of a kernel that writes norm.d_x; its d_weight and d_bias are not set.
template <class T>
LayerNormBackwardArgs<T> norm_backward_args(const NormBackward& norm) {
  return {pointer<T>(norm.d_y),
          pointer<float>(norm.x),
          pointer<float>(norm.weight),
          pointer<float>(norm.mean),
          pointer<float>(norm.rstd),
          pointer<float>(norm.d_residual),
          pointer<float>(norm.d_x),
          nullptr,
          nullptr,
          norm.x.size(1)};
}

inline int64_t norm_blocks(const NormBackward& norm) {
  return (norm.x.size(0) + kNormBlock - 1) / kNormBlock;
}

// On a GPU: adds the gradients of weight and bias to theirs; kernel(args) computes d_x of all rows.
template <class T, class Kernel>
void layer_norm_backward_on_gpu(const NormBackward& norm, const Kernel& kernel) {
  const int64_t blocks = norm_blocks(norm), width = norm.x.size(1);
  const torch::Tensor sums = torch::empty({blocks, 2, width}, norm.x.options());
  const LayerNormBackwardArgs<T> args = norm_backward_args<T>(norm);
  on_gpu(norm.x)->typed<T>().norm_weights({args, norm.x.size(0), kNormBlock, pointer<float>(sums)},
                                          blocks);
  kernel(args);  // may replace d_y
  on_gpu(norm.x)->add_totals({pointer<float>(sums), blocks, width, gradient_if_wanted(norm.weight),
                              gradient_if_wanted(norm.bias)},
                             width);
}

// On the CPU: adds the gradients of weight and bias to theirs. Calls prepare(begin, end) for the
// rows whose d_y is about to be read (d_y may be d_x itself) and finish(begin, end) for those whose
// d_x was just written. Each block of rows sums the weights' gradients for itself; the blocks are
// then added in order. The blocks do not depend on the number of threads, so neither does the
// result.
template <class T, class Finish, class Prepare = NoRows>
void layer_norm_backward(const NormBackward& norm, const Finish& finish,
                         const Prepare& prepare = {}) {
  const int64_t rows = norm.x.size(0), width = norm.x.size(1), blocks = norm_blocks(norm);
  const torch::Tensor partial = torch::zeros({2, blocks, width}, norm.x.options());
  float* sums = pointer<float>(partial);
  const LayerNormBackwardArgs<T> args = norm_backward_args<T>(norm);
  const auto kernel = kernels().typed<T>().layer_norm_backward;
  parallel_rows(blocks, kNormBlock * width, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      LayerNormBackwardArgs<T> own = args;
      own.d_weight = sums + block * width;
      own.d_bias = sums + (blocks + block) * width;
      const int64_t last = std::min(rows, (block + 1) * kNormBlock);
      prepare(block * kNormBlock, last);
      kernel(own, block * kNormBlock, last);
      finish(block * kNormBlock, last);
    }
  });
  if (norm.weight.requires_grad()) add_column_sums(gradient_of(norm.weight), partial[0]);
  if (norm.bias.requires_grad()) add_column_sums(gradient_of(norm.bias), partial[1]);
}

}  // namespace lockstep::detail
