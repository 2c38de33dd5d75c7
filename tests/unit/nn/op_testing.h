// What the tests of nn/ share: small parameters and inputs, every instruction set this CPU can run,
// and the comparison of a fused operation with its plain reference.
#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <functional>
#include <string>
#include <vector>

#include "nn/dropout.h"
#include "nn/numerics.h"
#include "nn/parameters.h"
#include "support/instruction_sets.h"
#include "support/tensor_compare.h"

namespace lockstep {

// bfloat16 keeps 8 bits: one rounding is off by up to 2^-9 = 0.2 %. Fused and plain round at
// different places, two or three times on the way of a value, and gradients sum such errors.
struct Tolerance {
  double fp32 = 2e-5;
  double bf16 = 2e-2;
  double of(at::ScalarType type) const { return type == at::kFloat ? fp32 : bf16; }
};

#define EXPECT_TENSORS_CLOSE(actual, expected, tolerance)                    \
  do {                                                                       \
    ASSERT_EQ((actual).sizes(), (expected).sizes());                         \
    ASSERT_EQ((actual).scalar_type(), (expected).scalar_type());             \
    EXPECT_LE(::lockstep::relative_difference(actual, expected), tolerance); \
  } while (false)

// Sets the number of torch's threads for a scope.
class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }

 private:
  int before_;
};

inline torch::Tensor random_tensor(std::vector<int64_t> shape, uint64_t seed,
                                   at::ScalarType type = at::kFloat) {
  at::Generator generator = at::detail::createCPUGenerator(seed);
  return torch::randn(shape, generator, torch::kFloat).to(type);
}

inline Dropout test_dropout(double p, int64_t rows) {
  Dropout dropout;
  dropout.p = p;
  dropout.key = dropout_key(7, 11, 3);
  // Any 64 bits, as a training's are.
  dropout.rows = torch::arange(rows, torch::kInt64) * int64_t{0x779b97f4a7c15e35} + 5;
  return dropout;
}

// Parameters with the given shapes, values from N(0, 0.5), and a copy in 16 bits.
struct TestParameters {
  Parameters all;
  std::vector<ParameterRef> list;
  explicit TestParameters(const std::vector<std::vector<int64_t>>& shapes,
                          at::ScalarType low = torch::kBFloat16) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      list.push_back(all.add("p" + std::to_string(i), shapes[i], normal(0.5)));
    }
    all.allocate(torch::kCPU, low, 5);
  }
  const ParameterRef& operator[](std::size_t i) const { return list[i]; }
};

// What came out of one forward and backward pass.
struct Outcome {
  std::vector<torch::Tensor> values;     // outputs, then gradients of the inputs
  std::vector<torch::Tensor> gradients;  // of the parameters
};

using Operation = std::function<torch::Tensor(const std::vector<torch::Tensor>& inputs,
                                              const Numerics& numerics)>;

// Gradients of the parameters start at 1, so that overwriting them instead of adding shows.
inline Outcome run_operation(const Operation& operation, const std::vector<torch::Tensor>& inputs,
                             TestParameters* parameters, const Numerics& numerics) {
  if (parameters) parameters->all.gradients().fill_(1);
  std::vector<torch::Tensor> leaves;
  for (const torch::Tensor& input : inputs) {
    leaves.push_back(input.detach().clone().set_requires_grad(true));
  }
  torch::Tensor out = operation(leaves, numerics);
  out.backward(random_tensor(out.sizes().vec(), 99, out.scalar_type()));
  Outcome outcome;
  outcome.values.push_back(out.detach());
  for (const torch::Tensor& leaf : leaves) outcome.values.push_back(leaf.grad().clone());
  if (parameters) {
    for (const ParameterRef& p : parameters->list) {
      outcome.gradients.push_back(p->value.grad().clone());
    }
  }
  return outcome;
}

// Fused against plain, for each instruction set: outputs, gradients of inputs and of parameters.
inline void expect_fused_equals_plain(const Operation& operation,
                                      const std::vector<torch::Tensor>& inputs,
                                      TestParameters* parameters, at::ScalarType compute,
                                      const Tolerance& tolerance = {}) {
  SCOPED_TRACE(compute == at::kFloat ? "fp32" : "bf16");
  const Outcome plain = run_operation(operation, inputs, parameters, {compute, false});
  for_each_isa([&] {
    const Outcome fused = run_operation(operation, inputs, parameters, {compute, true});
    for (std::size_t i = 0; i < plain.values.size(); ++i) {
      SCOPED_TRACE("value " + std::to_string(i));
      EXPECT_TENSORS_CLOSE(fused.values[i], plain.values[i], tolerance.of(compute));
    }
    for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
      SCOPED_TRACE("parameter " + std::to_string(i));
      EXPECT_TENSORS_CLOSE(fused.gradients[i], plain.gradients[i], tolerance.of(compute));
    }
  });
}

}  // namespace lockstep
