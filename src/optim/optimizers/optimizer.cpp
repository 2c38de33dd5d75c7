#include "optim/optimizers/optimizer.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cmath>

namespace lockstep {

double euclidean_norm(const torch::Tensor& flat) {
  RECORD_FUNCTION("lockstep::euclidean_norm", {});
  if (!flat.is_cpu()) {
    // Summed in fp64, as below: in fp32 a sum over millions of weights may lose three digits.
    return at::linalg_vector_norm(flat, 2, {}, false, torch::kDouble).item<double>();
  }
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

std::vector<UpdateRun> update_runs(const FlatArrays& arrays, const StepSize& size) {
  const std::vector<LayerSlice>& layers = arrays.layers;
  const std::vector<double>& scales = size.layer_scales;
  TORCH_CHECK(scales.empty() || scales.size() == layers.size(), "a scale a layer is needed");
  auto decays = [](const LayerSlice& layer) { return layer.decays; };
  if (scales.empty() && std::all_of(layers.begin(), layers.end(), decays)) {
    return {{0, arrays.values.numel(), size.gradient_scale, true}};
  }
  std::vector<UpdateRun> runs;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerSlice& layer = layers[i];
    if (layer.begin == layer.end) continue;
    const double scale = size.gradient_scale * (scales.empty() ? 1 : scales[i]);
    if (!runs.empty() && runs.back().gradient_scale == scale &&
        runs.back().decays == layer.decays) {
      runs.back().end = layer.end;
    } else {
      runs.push_back({layer.begin, layer.end, scale, layer.decays});
    }
  }
  return runs;
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
