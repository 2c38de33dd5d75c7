#include "nn/packed_linear.h"

#include <ATen/Parallel.h>

#include <cmath>

#include "nn/fused.h"

namespace lockstep {
namespace {

using torch::Tensor;

int64_t inputs_in_group(WeightFormat format) {
  return format == WeightFormat::kFp32 ? 1 : format == WeightFormat::kBf16 ? 2 : 4;
}

// Returns [padded outputs]: `values`, then zeros.
Tensor padded_row(const Tensor& values, int64_t padded) {
  Tensor out = torch::zeros({padded}, torch::kFloat);
  if (values.defined()) out.narrow(0, 0, values.size(0)).copy_(values);
  return out;
}

template <class T>
void pack_panel(const T* weight, int64_t inputs, int64_t rows, int64_t group, T* panel) {
  for (int64_t o = 0; o < rows; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      panel[(i / group * kPanelOutputs + o) * group + i % group] = weight[o * inputs + i];
    }
  }
}

// Packs weight [outputs, inputs] of elements T into panels of bytes, with zeros
// where there is no weight.
template <class T>
Tensor pack(const Tensor& weight, int64_t group) {
  const int64_t outputs = weight.size(0), inputs = weight.size(1);
  const int64_t panels = (outputs + kPanelOutputs - 1) / kPanelOutputs;
  const int64_t panel_size = (inputs + group - 1) / group * group * kPanelOutputs;
  Tensor out = torch::zeros({panels * panel_size * static_cast<int64_t>(sizeof(T))}, torch::kUInt8);
  const T* from = static_cast<const T*>(weight.const_data_ptr());
  T* to = static_cast<T*>(out.mutable_data_ptr());
  at::parallel_for(0, panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t rows = std::min(kPanelOutputs, outputs - p * kPanelOutputs);
      pack_panel(from + p * kPanelOutputs * inputs, inputs, rows, group, to + p * panel_size);
    }
  });
  return out;
}

}  // namespace

PackedLinear::PackedLinear(const Tensor& weight_given, const Tensor& bias, WeightFormat format)
    : format_(format), inputs_(weight_given.size(1)), outputs_(weight_given.size(0)) {
  torch::NoGradGuard no_grad;
  const Tensor weight = weight_given.detach().contiguous();
  const int64_t group = inputs_in_group(format);
  groups_ = (inputs_ + group - 1) / group;
  const int64_t padded = panels() * kPanelOutputs;
  bias_ = padded_row(bias, padded);
  if (format == WeightFormat::kFp32) panels_ = pack<float>(weight, group);
  if (format == WeightFormat::kBf16) panels_ = pack<uint16_t>(weight.to(at::kBFloat16), group);
  if (format != WeightFormat::kInt8) return;
  // The largest magnitude of a sum is 255 * 127 * inputs.
  TORCH_CHECK(inputs_ < 65536, "an int8 product of ", inputs_, " inputs overflows");
  const Tensor largest = weight.abs().amax(1);
  const Tensor scale = at::where(largest > 0, largest / 127, torch::ones_like(largest));
  const Tensor rounded = (weight / scale.unsqueeze(1)).round().clamp(-127, 127).to(torch::kInt8);
  panels_ = pack<int8_t>(rounded, group);
  scale_ = padded_row(scale, padded);
  offset_ = torch::zeros({padded}, torch::kInt32);
  offset_.narrow(0, 0, outputs_).copy_(rounded.sum(1, false, torch::kInt32) * 128);
}

int64_t PackedLinear::bytes() const {
  int64_t total = 0;
  for (const Tensor& t : {panels_, bias_, scale_, offset_}) {
    if (t.defined()) total += static_cast<int64_t>(t.nbytes());
  }
  return total;
}

PackedInput PackedLinear::prepare(const Tensor& x) const {
  TORCH_CHECK(x.dim() == 2 && x.size(1) == inputs_ && x.is_contiguous() &&
                  x.scalar_type() == activation_type(format_),
              "packed linear: x is ", x.scalar_type(), " ", x.sizes(), ", expected dense ",
              activation_type(format_), " [rows, ", inputs_, "]");
  if (format_ == WeightFormat::kFp32) return {x, {}};
  if (format_ == WeightFormat::kBf16) {
    return {inputs_ % 2 == 0 ? x : at::constant_pad_nd(x, {0, 1}), {}};
  }
  const int64_t rows = x.size(0), stride = 4 * groups_;
  PackedInput out{torch::empty({rows, stride}, torch::kUInt8), torch::empty({rows}, torch::kFloat)};
  const QuantiseRowsArgs args{detail::pointer<float>(x), inputs_, detail::pointer<uint8_t>(out.x),
                              stride, detail::pointer<float>(out.row_scale)};
  const auto kernel = kernels().packed_product.quantise_rows;
  detail::parallel_rows(rows, inputs_,
                        [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
  return out;
}

Tensor PackedLinear::store(const PackedInput& x, bool relu) const {
  const Tensor out = torch::empty({x.rows(), outputs_}, activation_type(format_));
  multiply(x, out, relu ? ProductEnd::kStoreRelu : ProductEnd::kStore, {0, panels()});
  return out;
}

void PackedLinear::add_to(const Tensor& stream, const Tensor& x) const {
  TORCH_CHECK(stream.scalar_type() == at::kFloat && stream.is_contiguous() &&
                  stream.size(0) == x.size(0) && stream.size(1) == outputs_,
              "packed linear: the stream is ", stream.scalar_type(), " ", stream.sizes());
  multiply(prepare(x), stream, ProductEnd::kAdd, {0, panels()});
}

void PackedLinear::store_part(const PackedInput& x, int64_t first, int64_t count,
                              const Tensor& out) const {
  TORCH_CHECK(first % kPanelOutputs == 0 && first + count <= outputs_ &&
                  (count % kPanelOutputs == 0 || first + count == outputs_) &&
                  out.scalar_type() == at::kFloat && out.is_contiguous() && out.size(1) >= count,
              "packed linear: outputs ", first, " to ", first + count, " of ", outputs_);
  multiply(x, out, ProductEnd::kStore,
           {first / kPanelOutputs, (first + count + kPanelOutputs - 1) / kPanelOutputs});
}

void PackedLinear::multiply(const PackedInput& x, const Tensor& out, ProductEnd end,
                            Part part) const {
  constexpr int64_t kWorthAThread = 1 << 21;  // multiplications: at least 10 us
  const bool low = out.scalar_type() == at::kBFloat16;
  const PackedProductArgs args{x.x.const_data_ptr(),
                               static_cast<int64_t>(x.x.size(1) * x.x.element_size()),
                               groups_,
                               panels_.const_data_ptr(),
                               outputs_,
                               detail::pointer<float>(bias_),
                               detail::pointer<float>(x.row_scale),
                               detail::pointer<float>(scale_),
                               detail::pointer<int32_t>(offset_),
                               end,
                               low,
                               out.data_ptr(),
                               out.size(1)};
  const PackedProductKernels& table = kernels().packed_product;
  const PackedProductFunction kernel = format_ == WeightFormat::kFp32   ? table.fp32
                                       : format_ == WeightFormat::kBf16 ? table.bf16
                                                                        : table.int8;
  const int64_t rows = x.rows();
  const int64_t work = std::max<int64_t>(1, rows * kPanelOutputs * inputs_);
  at::parallel_for(part.first_panel, part.last_panel, std::max<int64_t>(1, kWorthAThread / work),
                   [&](int64_t begin, int64_t stop) {
                     PackedProductArgs own = args;
                     const int64_t column = (begin - part.first_panel) * kPanelOutputs;
                     own.out = static_cast<char*>(args.out) + column * (low ? 2 : 4);
                     kernel(own, {0, rows, begin, stop});
                   });
}

}  // namespace lockstep
