#include "optim/optimizer.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/record_function.h>

#include <cmath>

namespace lockstep {

double euclidean_norm(const torch::Tensor& flat) {
  RECORD_FUNCTION("lockstep::euclidean_norm", {});
  if (!flat.is_cpu()) return flat.norm().item<double>();
  return std::sqrt(sum_of_squares(flat.const_data_ptr<float>(), flat.numel()));
}

std::vector<double> layer_norms(const std::vector<LayerSlice>& layers,
                                torch::Tensor LayerSlice::*tensor) {
  std::vector<double> norms;
  norms.reserve(layers.size());
  if (layers.empty() || (layers.front().*tensor).is_cpu()) {
    for (const LayerSlice& layer : layers) norms.push_back(euclidean_norm(layer.*tensor));
    return norms;
  }
  std::vector<torch::Tensor> tensors;
  for (const LayerSlice& layer : layers) tensors.push_back(layer.*tensor);
  torch::Tensor all = torch::stack(at::_foreach_norm(tensors)).to(torch::kCPU, torch::kDouble);
  norms.assign(all.data_ptr<double>(), all.data_ptr<double>() + all.numel());
  return norms;
}

namespace detail {

namespace {

template <class T>
T* data(const torch::Tensor& t) {
  return t.defined() ? static_cast<T*>(t.mutable_data_ptr()) : nullptr;
}

}  // namespace

UpdateArrays update_arrays(const FlatArrays& arrays, const torch::Tensor& m,
                           const torch::Tensor& v) {
  UpdateArrays out{.value = data<float>(arrays.values),
                   .gradient = data<float>(arrays.gradients),
                   .m = data<float>(m),
                   .v = data<float>(v),
                   .average = data<float>(arrays.average)};
  if (arrays.low.defined() && arrays.low.scalar_type() == at::kHalf) {
    out.fp16 = data<Fp16>(arrays.low);
  } else {
    out.bf16 = data<Bf16>(arrays.low);
  }
  return out;
}

PlainSlice::PlainSlice(const FlatArrays& arrays, const torch::Tensor& m_array,
                       const torch::Tensor& v_array, std::pair<int64_t, int64_t> range) {
  auto slice = [&](const torch::Tensor& flat) {
    return flat.defined() ? flat.narrow(0, range.first, range.second - range.first) : flat;
  };
  value = slice(arrays.values);
  gradient = slice(arrays.gradients);
  low = slice(arrays.low);
  average = slice(arrays.average);
  m = slice(m_array);
  v = slice(v_array);
}

void PlainSlice::begin(const UpdateStep& step) {
  gradient.mul_(step.gradient_scale);
  if (step.weight_decay == 0) return;
  if (step.decoupled) {
    value.mul_(1 - step.lr * step.weight_decay);
  } else {
    gradient.add_(value, step.weight_decay);
  }
}

void PlainSlice::end(const UpdateStep& step) {
  gradient.zero_();
  if (low.defined()) low.copy_(value);
  if (average.defined()) average.lerp_(value, 1 - step.average_decay);
}

}  // namespace detail
}  // namespace lockstep
