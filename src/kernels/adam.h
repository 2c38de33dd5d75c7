// One step of Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019) over flat arrays, in
// one pass over the memory: it unscales and clips, updates moments and weights, rounds them to
// bfloat16, moves their average and clears the gradient.
#pragma once

#include <cstdint>

#include "kernels/isa.h"

namespace lockstep {

// Arrays of equal length; the caller owns them. They must not overlap.
struct AdamArrays {
  float* value = nullptr;
  float* gradient = nullptr;  // read, then set to zero
  float* m = nullptr;         // first moment
  float* v = nullptr;         // second moment
  Bf16* low = nullptr;        // value rounded to nearest even, or null
  float* average = nullptr;   // exponential moving average of value, or null
};

// As torch.optim.Adam: epsilon is outside of the root and both moments are bias-corrected.
struct AdamStep {
  int64_t step = 1;  // of this update, counted from 1
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool decoupled = false;     // true: AdamW, value *= 1 - lr * decay; false: added to the gradient
  double gradient_scale = 1;  // the gradient is multiplied by it first
  double average_decay = 0;   // average = decay * average + (1 - decay) * value
};

// Updates the elements [begin, end): a rank may do a shard, and ranges may differ in their decay.
// The result does not depend on the number of threads.
void adam_step(const AdamArrays& arrays, const AdamStep& step, int64_t begin, int64_t end);

// Sum of the squares of x [n] in double, the same for any number of threads. The square of every
// finite float is finite in double: the sum is finite exactly when all elements are.
double sum_of_squares(const float* x, int64_t n);

}  // namespace lockstep
