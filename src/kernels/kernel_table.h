// Declares the CPU kernels: plain functions on raw pointers, compiled once per instruction set
// (files *_isa.cpp) and chosen once at run time. Nothing here knows of tensors or threads: a call
// handles the rows [begin, end) it is given, and callers split the rows between threads. The
// operations of nn/ call them; the mathematics is described there.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/image_kernels.h"
#include "kernels/packed_product.h"
#include "kernels/pixel_kernels.h"
#include "kernels/tile_convolution.h"
#include "kernels/weight_gradient.h"
#include "kernels/winograd.h"

namespace lockstep {

struct Bf16 {  // bfloat16: the upper half of a float
  uint16_t bits;
};

struct Fp16 {  // IEEE half: 5 bits of exponent, largest 65504, smallest 2^-24
  uint16_t bits;
};

// Dropout of rows of activations (nn/dropout.h); threshold 0 keeps every element.
struct DropoutRows {
  const int64_t* rows = nullptr;
  uint64_t key = 0;
  uint32_t threshold = 0;
  float scale = 1;
};

template <class T>
struct AddDropoutArgs {  // out = residual + dropout(x + bias)
  const float* residual;
  const T* x;
  const T* bias;  // [width], or null for none
  float* out;
  int64_t width;
  DropoutRows dropout;
  const float* row_scale = nullptr;  // [rows], by which x + bias is multiplied too; null: 1
};

template <class T>
struct AddDropoutBackwardArgs {  // d_x = dropout'(d_out)
  const float* d_out;
  T* d_x;
  int64_t width;
  DropoutRows dropout;
  const float* row_scale = nullptr;
};

template <class T>
struct ReluDropoutArgs {  // x = dropout(relu(x + bias))
  T* x;
  const T* bias;  // [width]
  int64_t width;
  DropoutRows dropout;
};

template <class T>
struct ReluDropoutBackwardArgs {  // d_x = d_y * scale where y > 0; y alone shows what was kept
  const T* d_y;
  const T* y;
  T* d_x;
  float scale;
};

template <class T>
struct GeluDropoutArgs {  // y = dropout(gelu or silu of x + bias), x = its slope (backward pass)
  T* x;
  const T* bias;  // [width]
  T* y;           // equal to x: no slope is kept
  int64_t width;
  DropoutRows dropout;
};

template <class T>
struct LayerNormArgs {
  const float* x;
  const float* weight;
  const float* bias;
  T* y;
  float* mean;  // [rows], for the backward pass
  float* rstd;  // [rows]
  int64_t width;
  float epsilon;
};

template <class T>
struct LayerNormBackwardArgs {
  const T* d_y;
  const float* x;
  const float* weight;
  const float* mean;
  const float* rstd;
  const float* d_residual;  // added to d_x; may be null
  float* d_x;
  float* d_weight;  // [width]: the sums over the rows of this call are added to it
  float* d_bias;    // [width]: likewise
  int64_t width;
};

// One attention over packed sentences. Row r of the query begins at query + r * query_stride, and
// its head h is the head_width elements from h * head_width on; the same holds for key and value.
template <class T>
struct AttentionArgs {
  const T* query;
  const T* key;
  const T* value;
  int64_t query_stride, key_stride;  // elements between rows; key_stride holds for the values too
  int64_t heads, head_width;
  bool causal;
  DropoutRows dropout;
  float* log_sum;  // [target tokens, heads]: log of the sum of exp of the scores
  // The forward pass alone uses these.
  T* out;
  int64_t out_stride;
};

template <class T>
struct AttentionBackwardArgs {
  const T* d_out;
  int64_t d_out_stride;
  T* d_query;
  T* d_key;
  T* d_value;
  int64_t d_query_stride, d_key_stride;
};

struct AttentionTask {  // one head of one sentence
  int64_t query_begin, query_end;
  int64_t key_begin, key_end;
  int64_t head;
};

// Attention of single queries to keys that lie anywhere in memory: the rows of a decoder's cache
// (decode/packed_decoder.cpp). Row r attends to keys[first[r]] ... keys[first[r] + count[r] - 1],
// each the key of one position; its value begins value_offset elements after the key.
template <class T>
struct GatheredAttentionArgs {
  const T* query;
  int64_t query_stride;
  const T* const* keys;
  const int32_t* first;
  const int32_t* count;  // at least 1
  int64_t value_offset;
  T* out;  // [rows, heads * head_width], dense
  int64_t heads, head_width;
  float* scratch;  // heads * (largest count + head_width) floats
};

// Attention of several queries to the same keys, such as all hypotheses of one sentence to its
// source. The keys are transposed once by transpose_keys: [heads, head_width, padded_keys(count)].
constexpr int64_t padded_keys(int64_t count) { return (count + 15) / 16 * 16; }
template <class T>
struct SharedAttentionArgs {
  const T* query;  // [rows, heads * head_width], dense
  const T* keys;   // transposed
  const T* values;
  int64_t value_stride;  // elements between the values of two positions
  int64_t count;         // number of positions, at least 1
  T* out;                // [rows, heads * head_width], dense
  int64_t heads, head_width;
  float* scratch;  // 4 * (heads * head_width + padded_keys(count)) floats
};
template <class T>
struct TransposeKeysArgs {
  const T* keys;
  int64_t stride;  // elements between two positions
  int64_t count;
  int64_t heads, head_width;
  T* out;  // [heads, head_width, padded_keys(count)], zeros from count on
};

// Updates what is known of each row by the logits of `count` further ids: the log of
// the sum of exp, and the `best` largest logits, where equal ones come in order of
// their ids (decode/candidates.h). A row starts with largest = -infinity, sum = 0 and
// every value = -infinity.
struct BestLogitsArgs {
  const float* logits;  // [rows, stride], of which `count` are used: the ids from first_id on
  int64_t stride;
  int64_t first_id, count;
  const int32_t* excluded;  // ids that count in the sum but are never among the best; ascending
  int64_t excluded_count;
  int64_t best;
  float* largest;  // [rows]: the largest of all logits so far
  float* sum;      // [rows] of exp(logit - largest)
  float* value;    // [rows, best]: largest first
  int32_t* id;     // [rows, best]
};

template <class T>
struct CrossEntropyArgs {
  T* logits;  // [rows, vocabulary], dense; the gradient replaces them if `gradient`
  int64_t vocabulary;
  const int64_t* targets;
  float smoothing;
  bool gradient;
  float gradient_scale;  // multiplies the gradient, so that fp16 can hold it (loss scaling)
  float* loss;           // [rows], smoothed
  float* nll;            // [rows]
  uint8_t* correct;      // [rows]: whether the target is the first of the largest logits
};

inline constexpr int64_t kZeroToken = -1;  // has a row of zeros instead of a row of the table

struct EmbeddingArgs {    // out = dropout(table[token] * scale + positions[position])
  const int64_t* tokens;  // or kZeroToken
  const int64_t* position;
  const float* table;
  const float* positions;
  float* out;
  int64_t width;
  float scale;
  DropoutRows dropout;
};

struct EmbeddingBackwardArgs {  // d_table[token] += dropout'(d_out) * scale, columns [begin, end)
  const int64_t* tokens;        // kZeroToken adds to no row
  int64_t count;
  const float* d_out;
  float* d_table;
  int64_t width;
  float scale;
  DropoutRows dropout;
};

struct UpdateArgs {  // what the kernels of all optimizers read and write (update.h)
  float* value;
  float* gradient;
  Bf16* bf16;      // or null
  Fp16* fp16;      // or null
  float* average;  // or null
  float gradient_scale;
  float shrink;        // multiplies the value: 1 - lr * decoupled decay, or 1
  float l2_decay;      // l2_decay * value is added to the gradient; 0 without L2
  float average_rate;  // 1 - decay of the average
};

struct AdamArgs {
  UpdateArgs update;
  float* m;
  float* v;
  float rate1;         // 1 - beta1, computed in double: 1 - 0.999f is wrong in its fifth digit
  float beta2, rate2;  // rate2: 1 - beta2
  float epsilon;
  float step_size;     // lr / (1 - beta1^t)
  float second_scale;  // 1 / sqrt(1 - beta2^t)
};

struct MomentumArgs {  // m = decay * m + share * g; value -= lr * (from_gradient * g + from_m * m)
  UpdateArgs update;
  float* m;  // or null: value -= lr * g
  float decay, share;
  float from_gradient, from_m;
  float lr;
};

// out[j] = weights[0] * rows[0][j] + weights[1] * rows[1][j] + ..., in this order.
struct WeightedRowsArgs {
  const float* weights;  // [count], at least one
  const float* rows;     // [count, width]
  int64_t count, width;
  float* out;  // [width]
};

template <class T>
struct TypedKernels : PixelKernels<T> {
  void (*add_dropout)(const AddDropoutArgs<T>&, int64_t begin, int64_t end);
  void (*add_dropout_backward)(const AddDropoutBackwardArgs<T>&, int64_t begin, int64_t end);
  void (*relu_dropout)(const ReluDropoutArgs<T>&, int64_t begin, int64_t end);
  // [begin, end) counts elements here, not rows.
  void (*relu_dropout_backward)(const ReluDropoutBackwardArgs<T>&, int64_t begin, int64_t end);
  void (*gelu_dropout)(const GeluDropoutArgs<T>&, int64_t begin, int64_t end);
  void (*silu_dropout)(const GeluDropoutArgs<T>&, int64_t begin, int64_t end);
  // d_x = d_y * slope; [begin, end) counts elements, not rows.
  void (*gelu_dropout_backward)(const T* d_y, const T* slope, T* d_x, int64_t begin, int64_t end);
  void (*add_bias)(T* x, const T* bias, int64_t width, int64_t begin, int64_t end);
  void (*layer_norm)(const LayerNormArgs<T>&, int64_t begin, int64_t end);
  void (*layer_norm_backward)(const LayerNormBackwardArgs<T>&, int64_t begin, int64_t end);
  void (*cross_entropy)(const CrossEntropyArgs<T>&, int64_t begin, int64_t end);
  // `scratch` has attention_scratch() floats, is aligned to 64 bytes and needs no initial contents.
  void (*attention)(const AttentionArgs<T>&, const AttentionTask&, float* scratch);
  void (*attention_backward)(const AttentionArgs<T>&, const AttentionBackwardArgs<T>&,
                             const AttentionTask&, float* scratch);
  void (*gathered_attention)(const GatheredAttentionArgs<T>&, int64_t begin, int64_t end);
  void (*shared_attention)(const SharedAttentionArgs<T>&, int64_t rows);
  void (*transpose_keys)(const TransposeKeysArgs<T>&);
  // sums[j] += the sum over all rows of x[row * width + j], for the columns [begin, end).
  void (*add_column_sums)(const T* x, int64_t rows, int64_t width, float* sums, int64_t begin,
                          int64_t end);
};

// out[i] = inputs[0][i] + inputs[1][i] + ..., for `count` arrays of n elements; `out` may be one of
// them. They are added in pairs, ((0 + 1) + (2 + 3)) + ..., the largest power of two of them before
// the others, so that a sum of sums of neighbours has the same bits. 16-bit types are added in fp32
// and rounded once, to nearest even.
using SumFunction = void (*)(const void* const* inputs, int64_t count, void* out, int64_t n);
struct SumKernels {
  SumFunction fp32, fp64, fp16, bf16, int64;
};

// Each better than those before it, where the CPU has it. avx512_vnni multiplies bytes, avx512_dot
// pairs of bf16 too, amx tiles.
inline constexpr std::array<const char*, 7> kInstructionSets = {
    "generic", "avx2", "avx512", "avx512_vnni", "avx512_dot", "amx", "neon_dot"};

struct Kernels {
  const char* isa;  // one of kInstructionSets
  // Whether packed_product.bf16 is faster than .fp32. vdpbf16ps, which avx512_dot and amx use, has
  // twice the rate of fp32's multiply-add on AMD, on Intel the same, less what it takes to round.
  bool fast_bf16 = false;
  TypedKernels<float> fp32;
  TypedKernels<Bf16> bf16;
  TypedKernels<Fp16> fp16;
  // Returns the scratch, in floats, that attention over at most `longest_key` keys needs, forward
  // and backward.
  int64_t (*attention_scratch)(int64_t longest_key, int64_t head_width);
  void (*embedding)(const EmbeddingArgs&, int64_t begin, int64_t end);
  void (*embedding_backward)(const EmbeddingBackwardArgs&, int64_t begin, int64_t end);
  void (*to_bf16)(const float* x, Bf16* y, int64_t n);  // round to nearest, ties to even
  void (*to_float)(const Bf16* x, float* y, int64_t n);
  void (*add_bf16)(const Bf16* x, float* sum, int64_t n);  // sum += x
  SumKernels sum;
  void (*best_logits)(const BestLogitsArgs&, int64_t begin, int64_t end);
  PackedProductKernels packed_product;
  WeightGradientKernels weight_gradient;
  ImageKernels image;
  TileConvolutionKernels tile_convolution;
  WinogradKernels<float> winograd_fp32;
  WinogradKernels<Bf16> winograd_bf16;
  void (*add_winograd_gradient)(const WinogradGradientArgs&, int64_t begin, int64_t end);
  // From here to weighted_rows: the same bits in every instruction set (update_isa.cpp).
  void (*adam)(const AdamArgs&, int64_t begin, int64_t end);
  void (*momentum)(const MomentumArgs&, int64_t begin, int64_t end);
  void (*move_average)(const UpdateArgs&, int64_t begin, int64_t end);  // of unchanged values
  bool (*all_zero)(const float* x, int64_t n);
  double (*sum_of_squares)(const float* x, int64_t n);
  void (*weighted_rows)(const WeightedRowsArgs&);
  void (*exponential)(const float* x, float* y, int64_t n);  // that of scalar_math.h, for its test

  template <class T>
  const TypedKernels<T>& typed() const;
};
template <>
inline const TypedKernels<float>& Kernels::typed<float>() const {
  return fp32;
}
template <>
inline const TypedKernels<Bf16>& Kernels::typed<Bf16>() const {
  return bf16;
}
template <>
inline const TypedKernels<Fp16>& Kernels::typed<Fp16>() const {
  return fp16;
}

// Returns the best table this CPU can run, or the one named by the environment variable
// LOCKSTEP_ISA. Throws ConfigError when that is unknown or this CPU cannot run it.
const Kernels& kernels();

// For tests: kernels_for returns the table of `isa`, or null when this CPU cannot run it;
// use_kernels makes kernels() return `table` from now on (null: the default again).
const Kernels* kernels_for(const char* isa);
void use_kernels(const Kernels* table);

}  // namespace lockstep
