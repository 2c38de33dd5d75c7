#include "nn/product.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "kernels/kernel_table.h"
#include "nn/own_product.h"

namespace lockstep::detail {
namespace {

// In fp32 libtorch uses MKL, which reaches two thirds of the peak on AMD's CPUs; oneDNN, used by
// the operation that torch.compile calls, reaches nine tenths
// (benchmarks/notes/2026-11-transformer-step.md). In bf16 at::mm uses oneDNN.
bool prefers_onednn(const torch::Tensor& x) {
#if defined(__x86_64__)
  static const bool is_amd = __builtin_cpu_is("amd") != 0;
#else
  static const bool is_amd = false;
#endif
  return is_amd && x.is_cpu() && x.scalar_type() == at::kFloat &&
         at::globalContext().userEnabledMkldnn() && x.size(0) > 1;
}

using Pointwise = torch::Tensor(const torch::Tensor&, const torch::Tensor&,
                                const std::optional<torch::Tensor>&, std::string_view,
                                torch::List<std::optional<at::Scalar>>,
                                std::optional<std::string_view>);

torch::Tensor onednn_linear(const torch::Tensor& x, const torch::Tensor& weight) {
  static const auto operation = c10::Dispatcher::singleton()
                                    .findSchemaOrThrow("mkldnn::_linear_pointwise", "")
                                    .typed<Pointwise>();
  return operation.call(x, weight, std::nullopt, "none", torch::List<std::optional<at::Scalar>>(),
                        "");
}

}  // namespace

bool widens(const torch::Tensor& x) {
  static const bool bf16_is_fast = [] {
    if (kernels_for("avx2") == nullptr) return true;  // not x86: not measured
    const Kernels* dot = kernels_for("avx512_dot");
    return kernels_for("amx") != nullptr || (dot != nullptr && dot->fast_bf16);
  }();
  return x.is_cpu() &&
         (x.scalar_type() == at::kHalf || (x.scalar_type() == at::kBFloat16 && !bf16_is_fast));
}

torch::Tensor wide(const torch::Tensor& x) { return x.to(at::kFloat); }

torch::Tensor product_transposed(const torch::Tensor& x, const torch::Tensor& weight) {
  if (widens(x)) return product_transposed(wide(x), wide(weight)).to(x.scalar_type());
  if (takes_own_product(x, weight)) return own_product_transposed(x, weight);
  return prefers_onednn(x) ? onednn_linear(x, weight) : at::mm(x, weight.t());
}

torch::Tensor product(const torch::Tensor& d_y, const torch::Tensor& weight,
                      const torch::Tensor& into) {
  if (takes_own_product(d_y, weight)) return own_product(d_y, weight, into);
  if (into.defined()) {
    return widens(d_y) ? into.add_(product(d_y, weight)) : into.addmm_(d_y, weight);
  }
  if (widens(d_y)) return product(wide(d_y), wide(weight)).to(d_y.scalar_type());
  return prefers_onednn(d_y) ? onednn_linear(d_y, weight.t()) : at::mm(d_y, weight);
}

}  // namespace lockstep::detail
