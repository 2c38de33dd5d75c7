// Computes layer normalisation of rows in fp32 (Ba, Kiros, Hinton 2016).
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

template <class T>
void layer_norm(const LayerNormArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t width = a.width;
  const float inverse = 1.0f / static_cast<float>(width);
  const float* weight = a.weight;
  const float* bias = a.bias;
  for (int64_t r = begin; r < end; ++r) {
    const float* x = a.x + r * width;
    T* y = a.y + r * width;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < width; ++j) sum += x[j];
    const float mean = sum * inverse;
    float squares = 0;  // of x - mean: E[x^2] - E[x]^2 would cancel
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < width; ++j) squares += (x[j] - mean) * (x[j] - mean);
    const float rstd = 1.0f / __builtin_sqrtf(squares * inverse + a.epsilon);
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      y[j] = from_float<T>((x[j] - mean) * rstd * weight[j] + bias[j]);
    }
    a.mean[r] = mean;
    a.rstd[r] = rstd;
  }
}

// With n = (x - mean) * rstd and g = d_y * weight:
// d_x = rstd * (g - mean(g) - n * mean(g * n)), d_weight = sum d_y * n, d_bias = sum d_y.
template <class T>
void layer_norm_backward(const LayerNormBackwardArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t width = a.width;
  const float inverse = 1.0f / static_cast<float>(width);
  const float* weight = a.weight;
  float* d_weight = a.d_weight;
  float* d_bias = a.d_bias;
  for (int64_t r = begin; r < end; ++r) {
    const float* x = a.x + r * width;
    const T* d_y = a.d_y + r * width;
    float* d_x = a.d_x + r * width;
    const float mean = a.mean[r], rstd = a.rstd[r];
    float sum_g = 0, sum_gn = 0;
#pragma omp simd reduction(+ : sum_g, sum_gn)
    for (int64_t j = 0; j < width; ++j) {
      const float d = to_float(d_y[j]);
      const float n = (x[j] - mean) * rstd;
      d_weight[j] += d * n;
      d_bias[j] += d;
      const float g = d * weight[j];
      d_x[j] = g;
      sum_g += g;
      sum_gn += g * n;
    }
    const float mean_g = sum_g * inverse, mean_gn = sum_gn * inverse;
    if (a.d_residual == nullptr) {
#pragma omp simd
      for (int64_t j = 0; j < width; ++j) {
        const float n = (x[j] - mean) * rstd;
        d_x[j] = rstd * (d_x[j] - mean_g - n * mean_gn);
      }
      continue;
    }
    const float* d_residual = a.d_residual + r * width;
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) {
      const float n = (x[j] - mean) * rstd;
      d_x[j] = d_residual[j] + rstd * (d_x[j] - mean_g - n * mean_gn);
    }
  }
}

}  // namespace

void fill_layer_norm(Kernels& table) {
  table.fp32.layer_norm = layer_norm<float>;
  table.bf16.layer_norm = layer_norm<Bf16>;
  table.fp16.layer_norm = layer_norm<Fp16>;
  table.fp32.layer_norm_backward = layer_norm_backward<float>;
  table.bf16.layer_norm_backward = layer_norm_backward<Bf16>;
  table.fp16.layer_norm_backward = layer_norm_backward<Fp16>;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
