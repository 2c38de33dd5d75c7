#include "decode/packed_linear.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr int64_t kMostInt8Inputs = 65536;  // the largest magnitude of a sum is 255 * 127 * inputs

// Puts `rows` rows of elements, the first outputs of a panel, into its groups.
template <class T>
void fill_panel(const T* weight, int64_t inputs, int64_t rows, T* panel) {
  constexpr int64_t kGroup = 4 / sizeof(T);
  for (int64_t o = 0; o < rows; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      panel[(i / kGroup * kPanelOutputs + o) * kGroup + i % kGroup] = weight[o * inputs + i];
    }
  }
}

// Rounds the weights of one output to q [inputs] and returns their scale; sum: of q.
float quantise(const float* weight, int64_t inputs, int8_t* q, int32_t& sum) {
  float largest = 0;
  for (int64_t i = 0; i < inputs; ++i) largest = std::max(largest, std::fabs(weight[i]));
  const float scale = largest > 0 ? largest / 127 : 1.0f;
  sum = 0;
  for (int64_t i = 0; i < inputs; ++i) {
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    const float rounded = (weight[i] / scale + kRound) - kRound;
    q[i] = static_cast<int8_t>(std::min(127.0f, std::max(-127.0f, rounded)));
    sum += q[i];
  }
  return scale;
}

}  // namespace

PackedLinear::PackedLinear(const Weight& weight, WeightFormat format, const Threads& threads) {
  matrix_.format = format;
  matrix_.outputs = weight.outputs;
  matrix_.inputs = weight.inputs;
  const bool int8 = format == WeightFormat::kInt8;
  if (int8 && weight.inputs >= kMostInt8Inputs) {
    throw ConfigError("an int8 product of {} inputs overflows; expected fewer than {}",
                      weight.inputs, kMostInt8Inputs);
  }
  const int64_t padded = matrix_.padded_outputs(), inputs = weight.inputs;
  const int64_t panels = matrix_.panel_bytes();
  auto memory = std::make_shared<RowMemory>();
  const int64_t bytes = panels + padded * (int8 ? 12 : 4);
  char* data = memory->room<char>(bytes);
  std::memset(data, 0, static_cast<std::size_t>(bytes));
  float* bias = reinterpret_cast<float*>(data + panels);
  float* scale = bias + padded;
  int32_t* offset = reinterpret_cast<int32_t*>(scale + padded);
  if (weight.bias != nullptr) std::copy(weight.bias, weight.bias + weight.outputs, bias);
  const int64_t panel_bytes = 4 * matrix_.groups() * kPanelOutputs;
  threads.split(0, padded / kPanelOutputs, 1, [&](int64_t begin, int64_t end) {
    std::vector<Bf16> low(static_cast<std::size_t>(kPanelOutputs * inputs));
    std::vector<int8_t> q(static_cast<std::size_t>(kPanelOutputs * inputs));
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p * kPanelOutputs;
      const int64_t rows = std::min(kPanelOutputs, weight.outputs - first);
      const float* from = weight.values + first * inputs;
      char* panel = data + p * panel_bytes;
      if (format == WeightFormat::kFp32) {
        fill_panel(from, inputs, rows, reinterpret_cast<float*>(panel));
      } else if (format == WeightFormat::kBf16) {
        kernels().to_bf16(from, low.data(), rows * inputs);
        fill_panel(low.data(), inputs, rows, reinterpret_cast<Bf16*>(panel));
      } else {
        for (int64_t o = 0; o < rows; ++o) {
          int32_t sum = 0;
          scale[first + o] = quantise(from + o * inputs, inputs, q.data() + o * inputs, sum);
          offset[first + o] = 128 * sum;
        }
        fill_panel(q.data(), inputs, rows, reinterpret_cast<int8_t*>(panel));
      }
    }
  });
  matrix_.panels = data;
  matrix_.bias = bias;
  if (int8) {
    matrix_.scale = scale;
    matrix_.offset = offset;
  }
  memory_ = std::move(memory);
}

int64_t PackedLinear::bytes() const {
  const bool int8 = matrix_.format == WeightFormat::kInt8;
  return matrix_.panel_bytes() + matrix_.padded_outputs() * (int8 ? 12 : 4);
}

void PackedLinear::prepare(const void* x, int64_t rows, PackedInput& out,
                           const Threads& threads) const {
  const int64_t inputs = matrix_.inputs;
  out.rows = rows;
  out.stride = 4 * matrix_.groups();
  out.row_scale = nullptr;
  out.x = x;
  if (matrix_.format == WeightFormat::kBf16 && inputs % 2 != 0) {  // a zero completes the group
    const Bf16* from = static_cast<const Bf16*>(x);
    Bf16* to = out.own_x.room<Bf16>(rows * (inputs + 1));
    out.x = to;
    for (int64_t r = 0; r < rows; ++r, from += inputs, to += inputs + 1) {
      std::copy(from, from + inputs, to);
      to[inputs] = {};
    }
  }
  if (matrix_.format != WeightFormat::kInt8) return;
  uint8_t* bytes = out.own_x.room<uint8_t>(rows * out.stride);
  float* scale = out.own_scale.room<float>(rows);
  const QuantiseRowsArgs args{static_cast<const float*>(x), inputs, bytes, out.stride, scale};
  const auto kernel = kernels().packed_product.quantise_rows;
  threads.split_rows(rows, inputs, [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
  out.x = bytes;
  out.row_scale = scale;
}

void PackedLinear::multiply(const PackedInput& x, ProductEnd end, void* out,
                            const Threads& threads) const {
  const bool bf16 = matrix_.format == WeightFormat::kBf16 && end != ProductEnd::kAdd;
  run(x, {end, bf16, out, matrix_.outputs}, {0, matrix_.padded_outputs() / kPanelOutputs}, threads);
}

void PackedLinear::multiply_part(const PackedInput& x, const Part& part, float* out, int64_t stride,
                                 const Threads& threads) const {
  const int64_t last = (part.first + part.count + kPanelOutputs - 1) / kPanelOutputs;
  run(x, {ProductEnd::kStore, false, out, stride}, {part.first / kPanelOutputs, last}, threads);
}

void PackedLinear::run(const PackedInput& x, const Output& out, const Panels& panels,
                       const Threads& threads) const {
  constexpr int64_t kWorthAThread = 1 << 21;  // multiplications: at least 10 us
  PackedProductArgs args{};
  args.x = x.x;
  args.x_stride = x.stride;
  args.groups = matrix_.groups();
  args.panels = matrix_.panels;
  args.outputs = matrix_.outputs;
  args.bias = matrix_.bias;
  args.row_scale = x.row_scale;
  args.scale = matrix_.scale;
  args.offset = matrix_.offset;
  args.end = out.end;
  args.out_is_bf16 = out.is_bf16;
  args.out_stride = out.stride;
  const PackedProductKernels& table = kernels().packed_product;
  const PackedProductFunction kernel = matrix_.format == WeightFormat::kFp32   ? table.fp32
                                       : matrix_.format == WeightFormat::kBf16 ? table.bf16
                                                                               : table.int8;
  const int64_t work = std::max<int64_t>(1, x.rows * kPanelOutputs * matrix_.inputs);
  threads.split(panels.first, panels.last, std::max<int64_t>(1, kWorthAThread / work),
                [&](int64_t begin, int64_t end) {
                  PackedProductArgs own = args;
                  const int64_t column = (begin - panels.first) * kPanelOutputs;
                  own.out = static_cast<char*>(out.data) + column * (out.is_bf16 ? 2 : 4);
                  kernel(own, {0, x.rows, begin, end});
                });
}

void PackedLinear::weights_of(int64_t output, float* out) const {
  const int64_t group = matrix_.inputs_in_group();
  const char* panel = static_cast<const char*>(matrix_.panels) +
                      output / kPanelOutputs * (4 * matrix_.groups() * kPanelOutputs) +
                      4 * (output % kPanelOutputs);
  for (int64_t i = 0; i < matrix_.inputs; ++i) {
    const char* at = panel + i / group * (4 * kPanelOutputs);
    switch (matrix_.format) {
      case WeightFormat::kFp32:
        std::memcpy(out + i, at, 4);
        break;
      case WeightFormat::kBf16: {
        const uint32_t bits =
            static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(at)[i % group]) << 16;
        std::memcpy(out + i, &bits, 4);
        break;
      }
      case WeightFormat::kInt8:
        out[i] = matrix_.scale[output] *
                 static_cast<float>(reinterpret_cast<const int8_t*>(at)[i % group]);
    }
  }
}

}  // namespace lockstep
