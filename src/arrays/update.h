// Takes an optimizer step over flat arrays in one pass over the memory: it unscales and clips,
// updates moments and weights, rounds them to 16 bits, moves their average and clears the gradient.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace lockstep {

// Arrays of equal length; the caller owns them. They must not overlap.
struct UpdateArrays {
  float* value = nullptr;
  float* gradient = nullptr;  // read, then set to zero
  float* m = nullptr;         // first moment or momentum; may be null for momentum_step
  float* v = nullptr;         // second moment; Adam only
  Bf16* bf16 = nullptr;       // value rounded to nearest even, or null
  float* average = nullptr;   // exponential moving average of value, or null
  Fp16* fp16 = nullptr;       // like bf16; at most one of the two is set
};

// What all optimizers share.
struct UpdateStep {
  double lr = 1e-3;
  double weight_decay = 0;
  bool decoupled = false;     // true: value *= 1 - lr * decay; false: added to the gradient
  double gradient_scale = 1;  // the gradient is multiplied by it first
  double average_decay = 0;   // average = decay * average + (1 - decay) * value
};

// Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019) as torch.optim computes them:
// both moments are bias-corrected, and epsilon is added outside the root.
struct AdamStep : UpdateStep {
  int64_t step = 1;  // number of this update, counted from 1
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  // True: epsilon is added to the bias-corrected root. False: TensorFlow's form ("epsilon hat" of
  // the paper's section 2), lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon).
  bool corrected_epsilon = true;
};

// m = decay * m + share * g, value -= lr * (nesterov ? g + decay * m : m).
// Without m, value -= lr * g.
struct MomentumStep : UpdateStep {
  double decay = 0;
  double share = 1;
  bool nesterov = false;
};

// All of these update the elements [begin, end): a rank may update a shard only, and ranges may
// differ in their scale. The result does not depend on the number of threads.
void adam_step(const UpdateArrays& arrays, const AdamStep& step, int64_t begin, int64_t end);
void momentum_step(const UpdateArrays& arrays, const MomentumStep& step, int64_t begin,
                   int64_t end);

// The arguments of the kernels that these steps run, for those who run them elsewhere.
AdamArgs adam_args(const UpdateArrays& arrays, const AdamStep& step);
MomentumArgs momentum_args(const UpdateArrays& arrays, const MomentumStep& step);

// Rows of a table, of which the elements [begin, end) of the arrays hold a part.
struct TableRows {
  const float* gradient = nullptr;  // [rows, width]: of the whole table
  int64_t width = 0;
  int64_t first = 0;  // the table's element that lies at `begin`
};
// Runs Adam for the rows whose gradient is not all zero. The other rows keep value and moments;
// their average is updated. A row that the range cuts is judged by its whole gradient.
void lazy_adam_step(const UpdateArrays& arrays, const AdamStep& step, const TableRows& table,
                    int64_t begin, int64_t end);

// Returns the sum of the squares of x [n] in double, the same for any number of threads. The square
// of every finite float is finite in double: the sum is finite exactly when all elements are.
double sum_of_squares(const float* x, int64_t n);

}  // namespace lockstep
