// Computes what a decoder needs for the one new token of each row: attention of one query to the
// positions before it, and the choice of the next tokens from the logits.
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "kernels/isa_math.h"
#include "kernels/small_product_isa.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

inline float total(Lanes x) {
  alignas(64) float lane[kLanes];
  *reinterpret_cast<StoredLanes*>(lane) = x;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < kLanes; ++i) sum += lane[i];
  return sum;
}

// Returns q . key over one head of `width` elements.
template <class T>
inline float dot(const float* query, const T* key, int64_t width) {
  Lanes sum = {};
  int64_t j = 0;
  for (; j + kLanes <= width; j += kLanes) sum += load_lanes(query + j) * load_lanes(key + j);
  float rest = 0;
  for (; j < width; ++j) rest += query[j] * to_float(key[j]);
  return total(sum) + rest;
}

// Replaces scores [n] by their softmax after scaling.
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

// Mixes the values of one head: kVectors vectors of them, from element j of the row on.
template <int kVectors, class T>
inline void mix_gathered(const T* const* keys, int64_t count, const float* weights, int64_t j,
                         T* out) {
  Lanes sum[kVectors] = {};
  for (int64_t t = 0; t < count; ++t) {
    const T* value = keys[t] + j;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) sum[v] += weights[t] * load_lanes(value + v * kLanes);
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    alignas(64) float mixed[kLanes];
    *reinterpret_cast<StoredLanes*>(mixed) = sum[v];
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) out[v * kLanes + i] = from_float<T>(mixed[i]);
  }
}

template <class T>
void gathered_attention(const GatheredAttentionArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t width = a.heads * a.head_width;
  const float scale = 1 / __builtin_sqrtf(static_cast<float>(a.head_width));
  float* query = a.scratch;
  float* scores = a.scratch + width;  // of one head
  for (int64_t r = begin; r < end; ++r) {
    const T* const* keys = a.keys + a.first[r];
    const int64_t n = a.count[r];
    const T* given = a.query + r * a.query_stride;
    for (int64_t j = 0; j < width; ++j) query[j] = to_float(given[j]);
    for (int64_t h = 0; h < a.heads; ++h) {
      int64_t j = h * a.head_width;
      const int64_t last = j + a.head_width;
      for (int64_t t = 0; t < n; ++t) scores[t] = dot(query + j, keys[t] + j, a.head_width);
      softmax(scores, n, scale);
      T* out = a.out + r * width;
      const int64_t to_values = a.value_offset;
      for (; j + 4 * kLanes <= last; j += 4 * kLanes) {
        mix_gathered<4>(keys, n, scores, to_values + j, out + j);
      }
      for (; j + kLanes <= last; j += kLanes) {
        mix_gathered<1>(keys, n, scores, to_values + j, out + j);
      }
      for (; j < last; ++j) {
        float sum = 0;
        for (int64_t t = 0; t < n; ++t) sum += scores[t] * to_float(keys[t][to_values + j]);
        out[j] = from_float<T>(sum);
      }
    }
  }
}

// Computes the attention weights of one head for kRows queries. query: fp32 rows of the whole
// width; weights: kRows rows of padded_keys(count).
template <int kRows, class T>
void shared_scores(const SharedAttentionArgs<T>& a, int64_t head, const float* query,
                   float* weights) {
  const int64_t padded = padded_keys(a.count), width = a.heads * a.head_width;
  const T* keys = a.keys + head * a.head_width * padded;
  query += head * a.head_width;
  for (int64_t t = 0; t < padded; t += kLanes) {
    Lanes sum[kRows] = {};
    for (int64_t j = 0; j < a.head_width; ++j) {
      const Lanes key = load_lanes(keys + j * padded + t);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sum[r] += query[r * width + j] * key;
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
      *reinterpret_cast<StoredLanes*>(weights + r * padded + t) = sum[r];
  }
}

template <int kRows, class T>
void mix_values(const SharedAttentionArgs<T>& a, int64_t head, const float* weights, T* out) {
  const int64_t padded = padded_keys(a.count), width = a.heads * a.head_width;
  const T* values = a.values + head * a.head_width;
  out += head * a.head_width;
  int64_t j = 0;
  for (; j + kLanes <= a.head_width; j += kLanes) {
    Lanes sum[kRows] = {};
    for (int64_t t = 0; t < a.count; ++t) {
      const Lanes value = load_lanes(values + t * a.value_stride + j);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sum[r] += weights[r * padded + t] * value;
    }
    for (int r = 0; r < kRows; ++r) {
      alignas(64) float mixed[kLanes];
      *reinterpret_cast<StoredLanes*>(mixed) = sum[r];
      for (int i = 0; i < kLanes; ++i) out[r * width + j + i] = from_float<T>(mixed[i]);
    }
  }
  for (; j < a.head_width; ++j) {
    for (int r = 0; r < kRows; ++r) {
      float sum = 0;
      for (int64_t t = 0; t < a.count; ++t) {
        sum += weights[r * padded + t] * to_float(values[t * a.value_stride + j]);
      }
      out[r * width + j] = from_float<T>(sum);
    }
  }
}

template <int kRows, class T>
void shared_rows(const SharedAttentionArgs<T>& a, int64_t first) {
  const int64_t padded = padded_keys(a.count), width = a.heads * a.head_width;
  const float scale = 1 / __builtin_sqrtf(static_cast<float>(a.head_width));
  float* query = a.scratch;
  float* weights = a.scratch + 4 * width;
  for (int64_t i = 0; i < kRows * width; ++i) query[i] = to_float(a.query[first * width + i]);
  for (int64_t head = 0; head < a.heads; ++head) {
    shared_scores<kRows>(a, head, query, weights);
    for (int r = 0; r < kRows; ++r) softmax(weights + r * padded, a.count, scale);
    mix_values<kRows>(a, head, weights, a.out + first * width);
  }
}

template <class T>
void shared_attention(const SharedAttentionArgs<T>& a, int64_t rows) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) shared_rows<4>(a, r);
  for (; r + 2 <= rows; r += 2) shared_rows<2>(a, r);
  if (r < rows) shared_rows<1>(a, r);
}

template <class T>
void transpose_keys(const TransposeKeysArgs<T>& a) {
  const int64_t padded = padded_keys(a.count), width = a.heads * a.head_width;
  for (int64_t j = 0; j < width; ++j) {
    T* out = a.out + j * padded;
    for (int64_t t = 0; t < a.count; ++t) out[t] = a.keys[t * a.stride + j];
    for (int64_t t = a.count; t < padded; ++t) out[t] = from_float<T>(0);
  }
}

constexpr int64_t kBlock = 64;  // logits compared at once; most blocks need no search

float largest_of(const float* x, int64_t n) {
  float largest = x[0];
#pragma omp simd reduction(max : largest)
  for (int64_t j = 0; j < n; ++j) largest = x[j] > largest ? x[j] : largest;
  return largest;
}

// Inserts logit `v` of `id` into the sorted list of the best. REQUIRES: it belongs there.
void insert(float* value, int32_t* ids, int64_t best, float v, int64_t id) {
  int64_t at = best - 1;
  for (; at > 0 && v > value[at - 1]; --at) {
    value[at] = value[at - 1];
    ids[at] = ids[at - 1];
  }
  value[at] = v;
  ids[at] = static_cast<int32_t>(id);
}

bool is_excluded(const BestLogitsArgs& a, int64_t id) {
  for (int64_t i = 0; i < a.excluded_count; ++i) {
    if (a.excluded[i] == id) return true;
  }
  return false;
}

float sum_of_exponentials(const float* x, int64_t n, float largest) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; ++j) sum += exponential(x[j] - largest);
  return sum;
}

// Whether any of n <= kBlock logits is above the limit.
bool any_above(const float* x, int64_t n, float limit) {
#if defined(__AVX512F__)
  if (n == kBlock) {
    const __m512 bound = _mm512_set1_ps(limit);
    __mmask16 above = 0;
    for (int64_t j = 0; j < kBlock; j += 16) {
      above |= _mm512_cmp_ps_mask(_mm512_loadu_ps(x + j), bound, _CMP_GT_OQ);
    }
    return above != 0;
  }
#endif
  return largest_of(x, n) > limit;
}

void best_of_row(const BestLogitsArgs& a, int64_t r) {
  const float* logits = a.logits + r * a.stride;
  float* value = a.value + r * a.best;
  int32_t* ids = a.id + r * a.best;
  const float here = largest_of(logits, a.count);
  if (here > a.largest[r]) {
    a.sum[r] *= exponential(a.largest[r] - here);  // at the start the sum is 0
    a.largest[r] = here;
  }
  a.sum[r] += sum_of_exponentials(logits, a.count, a.largest[r]);
  if (!(here > value[a.best - 1])) return;
  for (int64_t begin = 0; begin < a.count; begin += kBlock) {
    const int64_t n = smaller(kBlock, a.count - begin);
    const float* x = logits + begin;
    if (!any_above(x, n, value[a.best - 1])) continue;
    for (int64_t j = 0; j < n; ++j) {
      const int64_t id = a.first_id + begin + j;
      if (x[j] > value[a.best - 1] && !is_excluded(a, id)) insert(value, ids, a.best, x[j], id);
    }
  }
}

void best_logits(const BestLogitsArgs& a, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) best_of_row(a, r);
}

}  // namespace

void fill_decoding(Kernels& table) {
  table.fp32.gathered_attention = gathered_attention<float>;
  table.bf16.gathered_attention = gathered_attention<Bf16>;
  table.fp16.gathered_attention = gathered_attention<Fp16>;
  table.fp32.shared_attention = shared_attention<float>;
  table.bf16.shared_attention = shared_attention<Bf16>;
  table.fp16.shared_attention = shared_attention<Fp16>;
  table.fp32.transpose_keys = transpose_keys<float>;
  table.bf16.transpose_keys = transpose_keys<Bf16>;
  table.fp16.transpose_keys = transpose_keys<Fp16>;
  table.best_logits = best_logits;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
