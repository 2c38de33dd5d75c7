// Measures the difference of tensors, and reads tensors from files that another program wrote.
#pragma once

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "formats/tensor_file.h"

namespace lockstep {

// Returns the largest difference relative to the largest magnitude of the expected tensor.
inline double relative_difference(const torch::Tensor& actual, const torch::Tensor& expected) {
  const torch::Tensor a = actual.to(torch::kDouble), e = expected.to(torch::kDouble);
  if (e.numel() == 0) return a.numel() == 0 ? 0 : 1;
  const double size = std::max(e.abs().max().item<double>(), 1e-6);
  const double difference = (a - e).abs().max().item<double>() / size;
  return std::isfinite(difference) ? difference : 1e30;
}

// Returns the difference's norm relative to that of the expected tensor.
inline double relative_norm(const torch::Tensor& actual, const torch::Tensor& expected) {
  const torch::Tensor a = actual.to(torch::kDouble), e = expected.to(torch::kDouble);
  return (a - e).norm().item<double>() / std::max(e.norm().item<double>(), 1e-9);
}

inline torch::Tensor tensor_of(const TensorFile& file, const std::string& name) {
  const TensorEntry& entry = file.get(name);
  const at::ScalarType type = entry.dtype == DType::kI64 ? at::kLong : at::kFloat;
  torch::Tensor out = torch::empty(entry.shape, type);
  std::copy(entry.data.begin(), entry.data.end(), static_cast<std::byte*>(out.data_ptr()));
  return out;
}

}  // namespace lockstep
