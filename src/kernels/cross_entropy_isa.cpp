// Computes softmax cross-entropy with label smoothing (Szegedy et al. 2016, section 7) over rows of
// logits; the gradient overwrites the logits.
#include "kernels/isa_math.h"

namespace lockstep {
namespace detail {
namespace LOCKSTEP_ISA {
namespace {

// As in torch's argmax, the first of equal entries counts; bfloat16 logits often tie.
template <class T>
bool is_first_largest(const T* logits, int64_t target, float largest) {
  if (to_float(logits[target]) < largest) return false;
  int64_t equal = 0;
#pragma omp simd reduction(+ : equal)
  for (int64_t j = 0; j < target; ++j) equal += to_float(logits[j]) == largest ? 1 : 0;
  return equal == 0;
}

template <class T>
void cross_entropy(const CrossEntropyArgs<T>& a, int64_t begin, int64_t end) {
  const int64_t n = a.vocabulary;
  const float share = a.smoothing / static_cast<float>(n);
  const float scale = a.gradient_scale;
  for (int64_t r = begin; r < end; ++r) {
    T* logits = a.logits + r * n;
    const int64_t target = a.targets[r];
    float largest = -__builtin_inff(), total = 0;
#pragma omp simd reduction(max : largest) reduction(+ : total)
    for (int64_t j = 0; j < n; ++j) {
      const float x = to_float(logits[j]);
      largest = x > largest ? x : largest;
      total += x;
    }
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < n; ++j) sum += exponential(to_float(logits[j]) - largest);
    const float log_sum = largest + __builtin_logf(sum);
    const float nll = log_sum - to_float(logits[target]);
    // The smoothing part is sum_j (log_sum - x_j) * share, as n * share = smoothing.
    a.loss[r] = (1 - a.smoothing) * nll + a.smoothing * log_sum - share * total;
    a.nll[r] = nll;
    a.correct[r] = is_first_largest(logits, target, largest) ? 1 : 0;
    if (!a.gradient) continue;
    const float p_target = exponential(to_float(logits[target]) - log_sum);
#pragma omp simd
    for (int64_t j = 0; j < n; ++j) {
      logits[j] = from_float<T>(scale * (exponential(to_float(logits[j]) - log_sum) - share));
    }
    logits[target] = from_float<T>(scale * (p_target - share - (1 - a.smoothing)));
  }
}

}  // namespace

void fill_cross_entropy(Kernels& table) {
  table.fp32.cross_entropy = cross_entropy<float>;
  table.bf16.cross_entropy = cross_entropy<Bf16>;
  table.fp16.cross_entropy = cross_entropy<Fp16>;
}

}  // namespace LOCKSTEP_ISA
}  // namespace detail
}  // namespace lockstep
