// Defines the steps of optimizers (arrays/update.h) for one element, or one row of a table
// (row_kernels.h).
#pragma once

#include <cmath>

#include "gpu/gpu_kernels.h"
#include "gpu/row_math.h"

namespace lockstep {
namespace detail {
namespace gpu_rows {

LOCKSTEP_ANYWHERE inline float updated_gradient(const UpdateArgs& u, int64_t i) {
  return u.gradient[i] * u.gradient_scale + u.l2_decay * u.value[i];
}

LOCKSTEP_ANYWHERE inline void move_average_of(const UpdateArgs& u, int64_t i) {
  if (u.average != nullptr) u.average[i] += u.average_rate * (u.value[i] - u.average[i]);
}

LOCKSTEP_ANYWHERE inline void set_value(const UpdateArgs& u, int64_t i, float value) {
  u.value[i] = value;
  u.gradient[i] = 0;
  if (u.bf16 != nullptr) u.bf16[i] = to_bf16(value);
  if (u.fp16 != nullptr) u.fp16[i] = to_fp16(value);
  move_average_of(u, i);
}

LOCKSTEP_ANYWHERE inline void adam_element(const AdamArgs& a, int64_t i) {
  const float g = updated_gradient(a.update, i);
  const float m = a.m[i] + a.rate1 * (g - a.m[i]);
  const float v = a.beta2 * a.v[i] + a.rate2 * (g * g);
  a.m[i] = m;
  a.v[i] = v;
  const float denominator = sqrtf(v) * a.second_scale + a.epsilon;
  set_value(a.update, i, a.update.value[i] * a.update.shrink - a.step_size * (m / denominator));
}

struct AdamElement {
  LOCKSTEP_ANYWHERE void operator()(const AdamRangeArgs& a, int64_t i) const {
    adam_element(a.adam, a.begin + i);
  }
};

struct MomentumElement {
  LOCKSTEP_ANYWHERE void operator()(const MomentumRangeArgs& range, int64_t element) const {
    const MomentumArgs& a = range.momentum;
    const int64_t i = range.begin + element;
    const float g = updated_gradient(a.update, i);
    float step = g;
    if (a.m != nullptr) {
      const float m = a.decay * a.m[i] + a.share * g;
      a.m[i] = m;
      step = a.from_gradient * g + a.from_m * m;
    }
    set_value(a.update, i, a.update.value[i] * a.update.shrink - a.lr * step);
  }
};

struct LazyAdamRow {
  template <class Team>
  LOCKSTEP_ANYWHERE void operator()(const LazyAdamArgs& a, int64_t row, const Team& team) const {
    const int64_t first = (a.first_row + row) * a.width;  // of the table
    float used = 0;                                       // a NaN is not zero
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      if (!(a.gradient[first + j] == 0)) used = 1;
    }
    used = team.max(used);
    for (int64_t j = team.rank(); j < a.width; j += team.size()) {
      const int64_t i = first + j + a.shift;
      if (i < a.begin || i >= a.end) continue;
      if (used > 0) {
        adam_element(a.adam, i);
      } else {
        move_average_of(a.adam.update, i);
      }
    }
  }
};

}  // namespace gpu_rows
}  // namespace detail
}  // namespace lockstep
