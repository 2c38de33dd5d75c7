// Declares the kernels of GPUs. They do what those of kernels/kernel_table.h do, whose arguments
// they take, with addresses in the memory of the GPU. A call puts the work for rows [0, rows) on
// the current stream and returns; it throws std::runtime_error with CUDA's words when that fails.
// Results do not depend on how the GPU divides the work; they differ from the CPU's by the order of
// sums in a row.
#pragma once

#include "gpu/gpu_pixel_kernels.h"
#include "kernels/kernel_table.h"

namespace lockstep {

template <class Args>
using GpuKernel = void (*)(const Args&, int64_t rows);

// add, then norm, which reads add.out: one pass instead of two.
template <class T, class N>
struct ResidualNormArgs {
  AddDropoutArgs<T> add;
  LayerNormArgs<N> norm;
  Bf16* rounded;  // norm.y in bf16 as well; null: none
};

// The gradient of norm's rows, which drop.d_out then names, and of the branch. d_weight and d_bias
// are not used. norm.d_y may be norm.d_x.
template <class T, class N>
struct ResidualNormBackwardArgs {
  LayerNormBackwardArgs<N> norm;
  AddDropoutBackwardArgs<T> drop;
};

// Sums of the gradients of weight and bias over blocks of rows: a "row" of this kernel is a block.
// d_x, d_weight and d_bias are not used.
template <class T>
struct NormWeightArgs {
  LayerNormBackwardArgs<T> norm;
  int64_t rows, block_rows;
  float* sums;  // [blocks, 2, width]
};

template <class T>
struct SlopeArgs {  // d_x = d_y * slope; rows are elements
  const T* d_y;
  const T* slope;
  T* d_x;
};

// Attention over packed sentences. Rows of the forward pass and of the queries' backward pass are
// (query token, head), those of the keys' backward pass (key token, head), heads next to each
// other.
template <class T>
struct PackedAttentionArgs {
  AttentionArgs<T> attention;
  AttentionBackwardArgs<T> gradients;  // not of the forward pass
  const int32_t* query_offsets;        // [sentences + 1]: where they begin among the query tokens
  const int32_t* key_offsets;          // [sentences + 1], likewise
  int64_t sentences, longest_key;
  // Working memory. The queries' backward pass leaves in the two arrays what the keys' reads.
  float* weights;   // [query tokens, heads, longest_key]
  float* d_scores;  // the same; not of the forward pass
};

// A token or position outside its table, which the CPU refuses before it computes, makes a row of
// NaN.
struct CheckedEmbeddingArgs {
  EmbeddingArgs rows;
  int64_t entries, positions;  // rows of the two tables
};

// The tokens in ascending order, and the rows of d_out that they stand for; among equal tokens rows
// ascend, so that each sum has the CPU's order.
struct SortedEmbeddingArgs {
  EmbeddingBackwardArgs rows;  // tokens [count], sorted
  const int64_t* order;        // [count]
  int64_t entries;             // rows of the table; others are passed over
};

// Row i of these is the element begin + i.
struct AdamRangeArgs {
  AdamArgs adam;
  int64_t begin;
};
struct MomentumRangeArgs {
  MomentumArgs momentum;
  int64_t begin;
};

// Row i is the table's row first_row + i: Adam where its gradient is not all zero, else the average
// alone (update.h's lazy_adam_step).
struct LazyAdamArgs {
  AdamArgs adam;
  const float* gradient;  // [rows, width]: of the whole table
  int64_t width, first_row;
  int64_t shift;       // from an element of the table to its element of the arrays
  int64_t begin, end;  // of the arrays
};

template <class T>
struct TypedGpuKernels {
  GpuKernel<AddDropoutArgs<T>> add_dropout;
  GpuKernel<AddDropoutBackwardArgs<T>> add_dropout_backward;
  GpuKernel<ReluDropoutArgs<T>> relu_dropout;
  GpuKernel<ReluDropoutBackwardArgs<T>> relu_dropout_backward;  // rows are elements
  GpuKernel<GeluDropoutArgs<T>> gelu_dropout;
  GpuKernel<GeluDropoutArgs<T>> silu_dropout;
  GpuKernel<SlopeArgs<T>> slope;
  GpuKernel<LayerNormArgs<T>> layer_norm;
  GpuKernel<LayerNormBackwardArgs<T>> layer_norm_backward;  // d_x alone
  GpuKernel<NormWeightArgs<T>> norm_weights;
  GpuKernel<ResidualNormArgs<T, T>> residual_norm;
  GpuKernel<ResidualNormArgs<T, float>> residual_norm_fp32;
  GpuKernel<ResidualNormBackwardArgs<T, T>> residual_norm_backward;
  GpuKernel<ResidualNormBackwardArgs<T, float>> residual_norm_fp32_backward;
  GpuKernel<PackedAttentionArgs<T>> attention;
  GpuKernel<PackedAttentionArgs<T>> attention_backward_queries;
  GpuKernel<PackedAttentionArgs<T>> attention_backward_keys;
  GpuKernel<PixelSumsArgs<T>> pixel_sums;
  GpuKernel<ChannelTotalsArgs<T>> channel_totals;
  GpuKernel<PixelNormArgs<T>> batch_norm;
  GpuKernel<PixelBackwardSumsArgs<T>> batch_norm_backward_sums;
  GpuKernel<PixelBackwardArgs<T>> batch_norm_backward;
  GpuKernel<CrossEntropyArgs<T>> cross_entropy;  // a target outside the vocabulary: a loss of NaN
};

struct GpuKernels {
  TypedGpuKernels<float> fp32;
  TypedGpuKernels<Bf16> bf16;
  TypedGpuKernels<Fp16> fp16;
  GpuKernel<CheckedEmbeddingArgs> embedding;
  GpuKernel<SortedEmbeddingArgs> embedding_backward;
  GpuKernel<AddTotalsArgs> add_totals;
  GpuKernel<BatchNormMomentsArgs> batch_norm_moments;
  GpuKernel<BatchNormTermsArgs> batch_norm_terms;
  GpuKernel<AdamRangeArgs> adam;
  GpuKernel<MomentumRangeArgs> momentum;
  GpuKernel<LazyAdamArgs> lazy_adam;

  template <class T>
  const TypedGpuKernels<T>& typed() const;
};
template <>
inline const TypedGpuKernels<float>& GpuKernels::typed<float>() const {
  return fp32;
}
template <>
inline const TypedGpuKernels<Bf16>& GpuKernels::typed<Bf16>() const {
  return bf16;
}
template <>
inline const TypedGpuKernels<Fp16>& GpuKernels::typed<Fp16>() const {
  return fp16;
}

// The table of this process's GPU; null: there is no GPU, or the program was built without them,
// and libtorch's operations do the work. It stays null or not from when the GPU was chosen.
const GpuKernels* gpu_kernels();
void use_gpu_kernels(const GpuKernels* table);

}  // namespace lockstep
