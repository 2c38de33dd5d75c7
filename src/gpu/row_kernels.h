// Defines the kernels of gpu/gpu_kernels.h, each as what a team of threads does to one row. CUDA's
// compiler makes blocks of threads of them (row_kernels.cu), a test loops over the rows with a team
// of one or more threads of the host: it is the same code.
//
// A team has rank(), size(), and sum(x) and max(x) over its threads, which all of them call
// together and which give all the same number. Thread `rank` of a team owns the columns rank, rank
// + size, ... of the row, in every loop: what it wrote it may read again without waiting for
// others. A kernel with kSmallTeam works on rows of some ten numbers, for which the threads of a
// warp are enough. sync(): all may read from then on what others wrote before. The team of a kernel
// with kUsesRoom has room() for kRoom numbers, which all of it read and write.
#pragma once

#include <cmath>

#include "gpu/gpu_kernels.h"
#include "gpu/row_attention.h"
#include "gpu/row_math.h"
#include "gpu/row_pixels.h"
#include "gpu/row_updates.h"

namespace lockstep {
namespace detail {
namespace gpu_rows {

LOCKSTEP_ANYWHERE inline float scale_of_row(const float* scales, int64_t row) {
  return scales == nullptr ? 1.0f : scales[row];
}

struct AddDropout {
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const AddDropoutArgs<T>& a, int64_t row,
                                    const Team& team) const {
    const RowFactors factors(a.dropout, row, scale_of_row(a.row_scale, row));
    const int64_t first = row * a.width;
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      const float bias = a.bias == nullptr ? 0.0f : to_float(a.bias[j]);
      const float v = to_float(a.x[first + j]) + bias;
      a.out[first + j] = a.residual[first + j] + v * factors.of(j);
    }
  }
};

struct AddDropoutBackward {
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const AddDropoutBackwardArgs<T>& a, int64_t row,
                                    const Team& team) const {
    const RowFactors factors(a.dropout, row, scale_of_row(a.row_scale, row));
    const int64_t first = row * a.width;
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      a.d_x[first + j] = from_float<T>(a.d_out[first + j] * factors.of(j));
    }
  }
};

struct ReluDropout {
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const ReluDropoutArgs<T>& a, int64_t row,
                                    const Team& team) const {
    const RowFactors factors(a.dropout, row);
    T* x = a.x + row * a.width;
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      const float v = to_float(x[j]) + to_float(a.bias[j]);
      x[j] = from_float<T>((v < 0 ? 0.0f : v) * factors.of(j));  // a NaN passes through
    }
  }
};

struct ReluDropoutBackward {
  template <class T>
  LOCKSTEP_ANYWHERE void operator()(const ReluDropoutBackwardArgs<T>& a, int64_t i) const {
    const float kept = to_float(a.y[i]) > 0 ? a.scale : 0.0f;
    a.d_x[i] = from_float<T>(to_float(a.d_y[i]) * kept);
  }
};

struct Gelu {
  LOCKSTEP_ANYWHERE Activation operator()(float x) const { return gelu(x); }
};
struct Silu {
  LOCKSTEP_ANYWHERE Activation operator()(float x) const { return silu(x); }
};

template <class Function>
struct SmoothDropout {
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const GeluDropoutArgs<T>& a, int64_t row,
                                    const Team& team) const {
    const RowFactors factors(a.dropout, row);
    const int64_t first = row * a.width;
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      const Activation made = Function{}(to_float(a.x[first + j]) + to_float(a.bias[j]));
      const float kept = factors.of(j);
      if (a.y != a.x) a.x[first + j] = from_float<T>(made.slope * kept);
      a.y[first + j] = from_float<T>(made.value * kept);
    }
  }
};

struct Slope {
  template <class T>
  LOCKSTEP_ANYWHERE void operator()(const SlopeArgs<T>& a, int64_t i) const {
    a.d_x[i] = from_float<T>(to_float(a.d_y[i]) * to_float(a.slope[i]));
  }
};

struct LayerNormRow {
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const LayerNormArgs<T>& a, int64_t row, const Team& team,
                                    Bf16* rounded = nullptr) const {
    const float inverse = 1.0f / static_cast<float>(a.width);
    const int64_t first = row * a.width;
    const float* x = a.x + first;
    float sum = 0;
    for (int64_t j = team.rank(); j < a.width; j += team.size()) sum += x[j];
    const float mean = team.sum(sum) * inverse;
    float squares = 0;  // of x - mean: E[x^2] - E[x]^2 would cancel
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      squares += (x[j] - mean) * (x[j] - mean);
    }
    const float rstd = 1.0f / sqrtf(team.sum(squares) * inverse + a.epsilon);
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      const float y = (x[j] - mean) * rstd * a.weight[j] + a.bias[j];
      a.y[first + j] = from_float<T>(y);
      if (rounded != nullptr) rounded[first + j] = to_bf16(y);
    }
    if (team.rank() == 0) {
      a.mean[row] = mean;
      a.rstd[row] = rstd;
    }
  }
};

// With n = (x - mean) * rstd and g = d_y * weight: d_x = rstd * (g - mean(g) - n * mean(g * n)).
struct LayerNormBackward {
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const LayerNormBackwardArgs<T>& a, int64_t row,
                                    const Team& team) const {
    const float inverse = 1.0f / static_cast<float>(a.width);
    const int64_t first = row * a.width;
    const float mean = a.mean[row], rstd = a.rstd[row];
    float sum_g = 0, sum_gn = 0;
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      const float g = to_float(a.d_y[first + j]) * a.weight[j];
      sum_g += g;
      sum_gn += g * ((a.x[first + j] - mean) * rstd);
    }
    const float mean_g = team.sum(sum_g) * inverse, mean_gn = team.sum(sum_gn) * inverse;
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      const float g = to_float(a.d_y[first + j]) * a.weight[j];
      const float n = (a.x[first + j] - mean) * rstd;
      const float residual = a.d_residual == nullptr ? 0.0f : a.d_residual[first + j];
      a.d_x[first + j] = residual + rstd * (g - mean_g - n * mean_gn);
    }
  }
};

struct NormWeights {
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const NormWeightArgs<T>& a, int64_t block,
                                    const Team& team) const {
    const int64_t width = a.norm.width, begin = block * a.block_rows;
    const int64_t end = begin + a.block_rows < a.rows ? begin + a.block_rows : a.rows;
    for (int64_t j = team.rank(); j < width; j += team.size()) {
      float d_weight = 0, d_bias = 0;
      for (int64_t row = begin; row < end; ++row) {
        const float d = to_float(a.norm.d_y[row * width + j]);
        d_weight += d * ((a.norm.x[row * width + j] - a.norm.mean[row]) * a.norm.rstd[row]);
        d_bias += d;
      }
      a.sums[block * 2 * width + j] = d_weight;
      a.sums[(block * 2 + 1) * width + j] = d_bias;
    }
  }
};

struct ResidualNormRow {
  template <class T, class N, class Team>
  LOCKSTEP_ANYWHERE void operator()(const ResidualNormArgs<T, N>& a, int64_t row,
                                    const Team& team) const {
    AddDropout{}(a.add, row, team);
    LayerNormRow{}(a.norm, row, team, a.rounded);
  }
};

struct ResidualNormBackward {
  template <class T, class N, class Team>
  LOCKSTEP_ANYWHERE void operator()(const ResidualNormBackwardArgs<T, N>& a, int64_t row,
                                    const Team& team) const {
    LayerNormBackward{}(a.norm, row, team);
    AddDropoutBackward{}(a.drop, row, team);
  }
};

struct CrossEntropy {
  template <class T, class Team>
  LOCKSTEP_ANYWHERE void operator()(const CrossEntropyArgs<T>& a, int64_t row,
                                    const Team& team) const {
    const int64_t n = a.vocabulary, target = a.targets[row];
    T* logits = a.logits + row * n;
    if (target < 0 || target >= n) {
      if (team.rank() == 0) {
        a.loss[row] = a.nll[row] = NAN;
        a.correct[row] = 0;
      }
      return;
    }
    float largest = -INFINITY, total = 0;
    for (int64_t j = team.rank(); j < n; j += team.size()) {
      const float x = to_float(logits[j]);
      largest = x > largest ? x : largest;
      total += x;
    }
    largest = team.max(largest);
    total = team.sum(total);
    float sum = 0, ahead = 0;  // ahead: equals of the largest before the target
    for (int64_t j = team.rank(); j < n; j += team.size()) {
      const float x = to_float(logits[j]);
      sum += exponential(x - largest);
      if (j < target && x == largest) ahead = 1;
    }
    const float at_target = to_float(logits[target]);  // before anyone overwrites it
    const float log_sum = largest + logf(team.sum(sum));
    ahead = team.max(ahead);
    const float share = a.smoothing / static_cast<float>(n);
    if (team.rank() == 0) {
      const float nll = log_sum - at_target;
      a.loss[row] = (1 - a.smoothing) * nll + a.smoothing * log_sum - share * total;
      a.nll[row] = nll;
      a.correct[row] = at_target < largest || ahead > 0 ? 0 : 1;
    }
    if (!a.gradient) return;
    for (int64_t j = team.rank(); j < n; j += team.size()) {
      const float p = exponential(to_float(logits[j]) - log_sum);
      const float wanted = j == target ? 1 - a.smoothing : 0.0f;
      logits[j] = from_float<T>(a.gradient_scale * (p - share - wanted));
    }
  }
};

struct Embedding {
  template <class Team>
  LOCKSTEP_ANYWHERE void operator()(const CheckedEmbeddingArgs& checked, int64_t row,
                                    const Team& team) const {
    const EmbeddingArgs& a = checked.rows;
    const int64_t token = a.tokens[row], position = a.position[row];
    const bool known = token >= kZeroToken && token < checked.entries && position >= 0 &&
                       position < checked.positions;
    const RowFactors factors(a.dropout, row);
    const float* entry = a.table + (token < 0 ? 0 : token) * a.width;
    const float scale = token < 0 ? 0.0f : a.scale;
    float* out = a.out + row * a.width;
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      out[j] =
          known ? (entry[j] * scale + a.positions[position * a.width + j]) * factors.of(j) : NAN;
    }
  }
};

// The team of the first of equal tokens adds all of their rows.
struct EmbeddingBackward {
  template <class Team>
  LOCKSTEP_ANYWHERE void operator()(const SortedEmbeddingArgs& sorted, int64_t first,
                                    const Team& team) const {
    const EmbeddingBackwardArgs& a = sorted.rows;
    const int64_t token = a.tokens[first];
    if (token < 0 || token >= sorted.entries) return;
    if (first > 0 && a.tokens[first - 1] == token) return;
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      float sum = a.d_table[token * a.width + j];
      for (int64_t i = first; i < a.count && a.tokens[i] == token; ++i) {
        const int64_t row = sorted.order[i];
        sum += a.d_out[row * a.width + j] * (a.scale * RowFactors(a.dropout, row).of(j));
      }
      a.d_table[token * a.width + j] = sum;
    }
  }
};

// Launch::row<Row, Args> and Launch::element<Element, Args> are GpuKernel<Args> that call Row or
// Element for each of the rows.
template <class Launch, class T>
void fill_typed(TypedGpuKernels<T>& table) {
  table.add_dropout = Launch::template row<AddDropout, AddDropoutArgs<T>>;
  table.add_dropout_backward = Launch::template row<AddDropoutBackward, AddDropoutBackwardArgs<T>>;
  table.relu_dropout = Launch::template row<ReluDropout, ReluDropoutArgs<T>>;
  table.relu_dropout_backward =
      Launch::template element<ReluDropoutBackward, ReluDropoutBackwardArgs<T>>;
  table.gelu_dropout = Launch::template row<SmoothDropout<Gelu>, GeluDropoutArgs<T>>;
  table.silu_dropout = Launch::template row<SmoothDropout<Silu>, GeluDropoutArgs<T>>;
  table.slope = Launch::template element<Slope, SlopeArgs<T>>;
  table.layer_norm = Launch::template row<LayerNormRow, LayerNormArgs<T>>;
  table.layer_norm_backward = Launch::template row<LayerNormBackward, LayerNormBackwardArgs<T>>;
  table.norm_weights = Launch::template row<NormWeights, NormWeightArgs<T>>;
  table.residual_norm = Launch::template row<ResidualNormRow, ResidualNormArgs<T, T>>;
  table.residual_norm_fp32 = Launch::template row<ResidualNormRow, ResidualNormArgs<T, float>>;
  table.residual_norm_backward =
      Launch::template row<ResidualNormBackward, ResidualNormBackwardArgs<T, T>>;
  table.residual_norm_fp32_backward =
      Launch::template row<ResidualNormBackward, ResidualNormBackwardArgs<T, float>>;
  table.attention = Launch::template row<AttentionForward, PackedAttentionArgs<T>>;
  table.attention_backward_queries =
      Launch::template row<AttentionBackwardQueries, PackedAttentionArgs<T>>;
  table.attention_backward_keys =
      Launch::template row<AttentionBackwardKeys, PackedAttentionArgs<T>>;
  table.pixel_sums = Launch::template row<PixelSumsOfBlock, PixelSumsArgs<T>>;
  table.channel_totals = Launch::template row<ChannelTotals, ChannelTotalsArgs<T>>;
  table.batch_norm = Launch::template row<PixelNormForward, PixelNormArgs<T>>;
  table.batch_norm_backward_sums =
      Launch::template row<PixelNormBackwardSums, PixelBackwardSumsArgs<T>>;
  table.batch_norm_backward = Launch::template row<PixelNormBackward, PixelBackwardArgs<T>>;
  table.cross_entropy = Launch::template row<CrossEntropy, CrossEntropyArgs<T>>;
}

template <class Launch>
GpuKernels make_gpu_kernels() {
  GpuKernels table{};
  fill_typed<Launch>(table.fp32);
  fill_typed<Launch>(table.bf16);
  fill_typed<Launch>(table.fp16);
  table.embedding = Launch::template row<Embedding, CheckedEmbeddingArgs>;
  table.embedding_backward = Launch::template row<EmbeddingBackward, SortedEmbeddingArgs>;
  table.add_totals = Launch::template row<AddTotals, AddTotalsArgs>;
  table.batch_norm_moments = Launch::template element<BatchNormMoments, BatchNormMomentsArgs>;
  table.batch_norm_terms = Launch::template element<BatchNormTerms, BatchNormTermsArgs>;
  table.adam = Launch::template element<AdamElement, AdamRangeArgs>;
  table.momentum = Launch::template element<MomentumElement, MomentumRangeArgs>;
  table.lazy_adam = Launch::template row<LazyAdamRow, LazyAdamArgs>;
  return table;
}

}  // namespace gpu_rows
}  // namespace detail
}  // namespace lockstep
