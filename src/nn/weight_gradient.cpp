#include "nn/weight_gradient.h"

#include "nn/fused.h"

namespace lockstep::detail {
namespace {

constexpr int64_t kUnit = 32;  // outputs or inputs

constexpr int64_t kOutputs = 512;  // of a call: their packed data then fits the cache

void add_part(const WeightGradientArgs& args, const WeightGradientPart& part) {
  constexpr int64_t kAlignment = 64;
  const torch::Tensor scratch =
      torch::empty({kernels().weight_gradient.scratch_bytes(args, part) + kAlignment}, at::kByte);
  auto address = reinterpret_cast<uintptr_t>(scratch.data_ptr());
  address = (address + kAlignment - 1) / kAlignment * kAlignment;
  kernels().weight_gradient.add(args, part, reinterpret_cast<void*>(address));
}

// Adds the units [begin, end) of the outputs or of the inputs, whichever are more.
void add_units(const WeightGradientArgs& args, int64_t begin, int64_t end) {
  WeightGradientPart all{0, args.outputs, 0, args.inputs};
  const bool by_outputs = args.outputs >= args.inputs;
  (by_outputs ? all.output_begin : all.input_begin) = begin * kUnit;
  (by_outputs ? all.output_end : all.input_end) = end * kUnit;
  for (int64_t o = all.output_begin; o < all.output_end; o += kOutputs) {
    const int64_t last = std::min(all.output_end, o + kOutputs);
    add_part(args, {o, last, all.input_begin, all.input_end});
  }
}

}  // namespace

bool add_weight_gradient_packed(const torch::Tensor& gradient, const torch::Tensor& d_y,
                                const torch::Tensor& x, const WeightGradientShape& shape) {
  const int64_t outputs = d_y.size(1), inputs = x.size(1);
  if (kernels().weight_gradient.add == nullptr || x.scalar_type() != at::kBFloat16 ||
      outputs % kUnit != 0 || inputs % kUnit != 0 || x.size(0) == 0) {
    return false;
  }
  TORCH_CHECK(d_y.is_contiguous() && x.is_contiguous() && gradient.is_contiguous() &&
                  gradient.numel() == outputs * inputs * shape.kernel * shape.kernel &&
                  x.size(0) == shape.images * shape.height * shape.width &&
                  d_y.size(0) == shape.images * ((shape.height - 1) / shape.stride + 1) *
                                     ((shape.width - 1) / shape.stride + 1),
              "weight gradient ", gradient.sizes(), " of ", d_y.sizes(), " and ", x.sizes());
  const WeightGradientArgs args{d_y.const_data_ptr(),
                                x.const_data_ptr(),
                                shape.images,
                                shape.height,
                                shape.width,
                                outputs,
                                inputs,
                                shape.kernel * shape.kernel,
                                shape.stride,
                                pointer<float>(gradient)};
  const int64_t units = std::max(outputs, inputs) / kUnit;
  parallel_rows(units, x.size(0) * std::min(outputs, inputs),
                [&](int64_t begin, int64_t end) { add_units(args, begin, end); });
  return true;
}

}  // namespace lockstep::detail
