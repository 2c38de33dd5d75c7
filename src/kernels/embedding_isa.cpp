// Computes embeddings, which are scaled rows of a table plus positions, with dropout; backward adds
// the gradient to the table's.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

void embedding(const EmbeddingArgs& a, int64_t begin, int64_t end) {
  const uint32_t threshold = a.dropout.threshold;
  const float kept_scale = a.dropout.scale;
  RandomHalves random;
  for (int64_t r = begin; r < end; ++r) {
    const bool zero = a.tokens[r] < 0;
    const float* entry = a.table + (zero ? 0 : a.tokens[r]) * a.width;
    const float* position = a.positions + a.position[r] * a.width;
    float* out = a.out + r * a.width;
    const uint64_t row = threshold == 0 ? 0 : row_bits(a.dropout.key, a.dropout.rows[r]);
    for (int64_t first = 0; first < a.width; first += kBlockColumns) {
      const int64_t count = smaller(kBlockColumns, a.width - first);
      const float scale = zero ? 0.0f : a.scale;
      if (threshold == 0) {
#pragma omp simd
        for (int64_t j = first; j < first + count; ++j) out[j] = entry[j] * scale + position[j];
        continue;
      }
      random.fill(row, first / 2, count);
      const Half* half = random.halves();
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        const float kept = half[j] >= threshold ? kept_scale : 0.0f;
        out[first + j] = (entry[first + j] * scale + position[first + j]) * kept;
      }
    }
  }
}

// Goes token by token over the columns [begin, end) (begin even): a thread owns columns, so the
// order of the additions does not depend on the number of threads.
void embedding_backward(const EmbeddingBackwardArgs& a, int64_t begin, int64_t end) {
  const uint32_t threshold = a.dropout.threshold;
  RandomHalves random;
  for (int64_t r = 0; r < a.count; ++r) {
    if (a.tokens[r] < 0) continue;
    const float* d_out = a.d_out + r * a.width;
    float* d_entry = a.d_table + a.tokens[r] * a.width;
    const uint64_t row = threshold == 0 ? 0 : row_bits(a.dropout.key, a.dropout.rows[r]);
    for (int64_t first = begin; first < end; first += kBlockColumns) {
      const int64_t count = smaller(kBlockColumns, end - first);
      const float scale = a.scale * a.dropout.scale;
      if (threshold == 0) {
#pragma omp simd
        for (int64_t j = first; j < first + count; ++j) d_entry[j] += d_out[j] * scale;
        continue;
      }
      random.fill(row, first / 2, count);
      const Half* half = random.halves();
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        const float kept = half[j] >= threshold ? scale : 0.0f;
        d_entry[first + j] += d_out[first + j] * kept;
      }
    }
  }
}

}  // namespace

void fill_embedding(Kernels& table) {
  table.embedding = embedding;
  table.embedding_backward = embedding_backward;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
