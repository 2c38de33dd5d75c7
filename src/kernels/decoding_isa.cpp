// What a decoder does for one new token a row: attention of one query to the positions before it,
// and the choice of the next tokens out of the logits.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

// scores[t] = q . key_t over one head of `width` elements.
template <class T>
float dot(const T* a, const T* b, int64_t width) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < width; ++j) sum += to_float(a[j]) * to_float(b[j]);
  return sum;
}

// scores [n] -> their softmax after scaling.
void softmax(float* scores, int64_t n, float scale) {
  float largest = scores[0];
#pragma omp simd reduction(max : largest)
  for (int64_t t = 0; t < n; ++t) largest = scores[t] > largest ? scores[t] : largest;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t t = 0; t < n; ++t) {
    scores[t] = exponential((scores[t] - largest) * scale);
    sum += scores[t];
  }
  const float factor = 1 / sum;
#pragma omp simd
  for (int64_t t = 0; t < n; ++t) scores[t] *= factor;
}

template <class T>
void gathered_attention(const GatheredAttentionArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t width = a.heads * a.head_width;
  const float scale = 1 / __builtin_sqrtf(static_cast<float>(a.head_width));
  float* mixed = a.scratch;           // [heads, head width]
  float* scores = a.scratch + width;  // [heads, positions]
  for (int64_t r = begin; r < end; ++r) {
    const T* const* keys = a.keys + a.first[r];
    const int64_t n = a.count[r];
    const T* query = a.query + r * a.query_stride;
    for (int64_t t = 0; t < n; ++t) {
      for (int64_t h = 0; h < a.heads; ++h) {
        scores[h * n + t] = dot(query + h * a.head_width, keys[t] + h * a.head_width, a.head_width);
      }
    }
    for (int64_t h = 0; h < a.heads; ++h) softmax(scores + h * n, n, scale);
    for (int64_t j = 0; j < width; ++j) mixed[j] = 0;
    for (int64_t t = 0; t < n; ++t) {
      const T* value = keys[t] + a.value_offset;
      for (int64_t h = 0; h < a.heads; ++h) {
        const float weight = scores[h * n + t];
        const T* from = value + h * a.head_width;
        float* to = mixed + h * a.head_width;
#pragma omp simd
        for (int64_t j = 0; j < a.head_width; ++j) to[j] += weight * to_float(from[j]);
      }
    }
    T* out = a.out + r * width;
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) out[j] = from_float<T>(mixed[j]);
  }
}

constexpr int64_t kBlock =
    64;  // logits whose largest is remembered: most blocks are never searched

template <class T>
float largest_of(const T* x, int64_t n) {
  float largest = to_float(x[0]);
#pragma omp simd reduction(max : largest)
  for (int64_t j = 0; j < n; ++j) {
    const float v = to_float(x[j]);
    largest = v > largest ? v : largest;
  }
  return largest;
}

template <class T>
void best_of_row(const BestLogitsArgs<T>& a, int64_t r) {
  T* logits = a.logits + r * a.vocabulary;
  float* value = a.log_probability + r * a.best;
  int32_t* id = a.id + r * a.best;
  const int64_t blocks = (a.vocabulary + kBlock - 1) / kBlock;
  auto block_largest = [&](int64_t b) {
    return largest_of(logits + b * kBlock, smaller(kBlock, a.vocabulary - b * kBlock));
  };
  for (int64_t b = 0; b < blocks; ++b) a.scratch[b] = block_largest(b);
  const float largest = largest_of(a.scratch, blocks);
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < a.vocabulary; ++j) sum += exponential(to_float(logits[j]) - largest);
  const float log_sum = largest + __builtin_logf(sum);

  const float never = -__builtin_inff();
  for (int64_t i = 0; i < a.excluded_count; ++i) {
    logits[a.excluded[i]] = from_float<T>(never);
    a.scratch[a.excluded[i] / kBlock] = block_largest(a.excluded[i] / kBlock);
  }
  for (int64_t i = 0; i < a.best; ++i) {
    value[i] = never;
    id[i] = 0;
  }
  for (int64_t b = 0; b < blocks; ++b) {
    if (!(a.scratch[b] > value[a.best - 1])) continue;
    const int64_t stop = smaller((b + 1) * kBlock, a.vocabulary);
    for (int64_t j = b * kBlock; j < stop; ++j) {
      const float v = to_float(logits[j]);
      if (!(v > value[a.best - 1])) continue;
      int64_t at = a.best - 1;
      for (; at > 0 && v > value[at - 1]; --at) {
        value[at] = value[at - 1];
        id[at] = id[at - 1];
      }
      value[at] = v;
      id[at] = static_cast<int32_t>(j);
    }
  }
  for (int64_t i = 0; i < a.best; ++i) value[i] -= log_sum;
}

template <class T>
void best_logits(const BestLogitsArgs<T>& a, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) best_of_row(a, r);
}

}  // namespace

void fill_decoding(Kernels& table) {
  table.fp32.gathered_attention = gathered_attention<float>;
  table.bf16.gathered_attention = gathered_attention<Bf16>;
  table.fp16.gathered_attention = gathered_attention<Fp16>;
  table.fp32.best_logits = best_logits<float>;
  table.bf16.best_logits = best_logits<Bf16>;
  table.fp16.best_logits = best_logits<Fp16>;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
