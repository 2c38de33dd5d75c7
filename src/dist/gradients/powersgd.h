// Declares configuration, sizes and orthogonalisation of PowerSGD (Vogels, Karimireddy, Jaggi
// 2019), which sends two factors in place of gradients. The hook itself is in powersgd_hook.h.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "config/fields.h"

namespace lockstep {

// One parameter in the flat gradients, taken as a matrix of its first dimension by all others.
struct GradientShape {
  int64_t offset = 0;  // elements
  int64_t rows = 0, columns = 1;

  int64_t numel() const { return rows * columns; }
};

struct PowerSgdConfig {
  int64_t rank = 4;
  int64_t start_step = 1000;
  double min_compression = 2;
  bool error_feedback = true;
  bool warm_start = true;

  void describe(Fields& f);
  // Whether the two factors of a matrix are smaller than the matrix by a factor of min_compression.
  bool compresses(const GradientShape& shape) const;
  // Returns how many fp32 numbers are sent for these parameters: both factors, and
  // the uncompressed rest.
  int64_t numbers_sent(const std::vector<GradientShape>& parameters) const;
};

// Both compute what all ranks must find to the same bits: on CPUs of any kind, which is tested, and
// on GPUs of any, by operations element by element, which was not tried.

// Makes the columns of `matrix` (fp32 [rows, rank], contiguous, rank <= rows) orthonormal by
// modified Gram-Schmidt, in double, on the CPU. A column that depends on those before it is
// replaced by a random one derived from `seed`, so that rank is not lost for good. What is not
// finite stays so.
void orthogonalize(const torch::Tensor& matrix, uint64_t seed);

// out = p q^T, for fp32 p [rows, rank], q [columns, rank] and out [rows, columns], contiguous.
void multiply_factors(const torch::Tensor& p, const torch::Tensor& q, const torch::Tensor& out);

}  // namespace lockstep
