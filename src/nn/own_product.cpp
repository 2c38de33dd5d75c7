#include "nn/own_product.h"

#include <string_view>

#include "nn/fused.h"

namespace lockstep::detail {
namespace {

constexpr int64_t kFewRows = 32;  // of one thread; with fewer, outputs are divided
constexpr int64_t kManyInputs = 8192;
constexpr int64_t kChunkInputs = 1024;
constexpr int64_t kManyWeights = int64_t{1} << 22;
constexpr int64_t kManyRows = 256;  // repay the packing of many weights

bool is_amd() {
#if defined(__x86_64__)
  static const bool result = __builtin_cpu_is("amd") != 0;
  return result;
#else
  return false;
#endif
}

int64_t panels_of(int64_t outputs, int64_t width = kPanelOutputs) {
  return (outputs + width - 1) / width;
}

// Returns the number of inputs in one group of 4 bytes.
int64_t inputs_in_group(at::ScalarType type) { return type == at::kFloat ? 1 : 2; }
int64_t groups_of(int64_t inputs, at::ScalarType type) {
  const int64_t group = inputs_in_group(type);
  return (inputs + group - 1) / group;
}

auto packing_of(at::ScalarType type) {
  const PackedProductKernels& table = kernels().packed_product;
  return type == at::kFloat ? table.pack_fp32 : table.pack_bf16;
}
PackedProductFunction product_of(at::ScalarType type) {
  const PackedProductKernels& table = kernels().packed_product;
  return type == at::kFloat ? table.fp32 : table.bf16;
}

torch::Tensor memory_for(int64_t outputs, int64_t inputs, at::ScalarType type,
                         int64_t width = kPanelOutputs) {
  return torch::empty({panels_of(outputs, width) * width * groups_of(inputs, type) * 4}, at::kByte);
}

constexpr int64_t kCachedBytes = 1 << 18;  // of each factor, so that both stay in the cache

const char* weight_at(const PackPanelsArgs& weight, int64_t output, int64_t input,
                      at::ScalarType type) {
  const int64_t element = 4 / inputs_in_group(type);
  return static_cast<const char*>(weight.from) +
         (output * weight.output_stride + input * weight.input_stride) * element;
}

// For more weights than the cache holds: every thread packs a few panels and multiplies all rows by
// them.
void multiply_by_blocks(const PackedProductArgs& args, int64_t rows, const PackPanelsArgs& weight,
                        at::ScalarType type) {
  const int64_t width = weight.panel_outputs;
  const int64_t block = std::max<int64_t>(1, kCachedBytes / (args.groups * width * 4));
  const PackedProductFunction kernel = product_of(type);
  parallel_rows(panels_of(weight.outputs, width), width * rows, [&](int64_t begin, int64_t end) {
    const torch::Tensor memory = memory_for(block * width, weight.inputs, type, width);
    for (int64_t panel = begin; panel < end; panel += block) {
      const int64_t first = panel * width, count = std::min(block, end - panel);
      PackPanelsArgs part = weight;
      part.from = weight_at(weight, first, 0, type);
      part.outputs = std::min(weight.outputs - first, count * width);
      part.panels = memory.data_ptr();
      packing_of(type)(part, 0, count);
      PackedProductArgs own = args;
      own.panels = part.panels;
      own.outputs = part.outputs;
      own.out = static_cast<char*>(args.out) + first * (args.out_is_bf16 ? 2 : 4);
      kernel(own, {0, rows, 0, count});
    }
  });
}

// For so many inputs that one panel leaves the cache: the inputs are taken in chunks, whose sums
// are added in fp32.
torch::Tensor multiply_by_chunks(const torch::Tensor& x, const PackPanelsArgs& weight,
                                 const torch::Tensor& into) {
  const at::ScalarType type = x.scalar_type();
  const int64_t rows = x.size(0), width = weight.panel_outputs;
  const int64_t panels = panels_of(weight.outputs, width);
  const int64_t chunks = (weight.inputs + kChunkInputs - 1) / kChunkInputs;
  const int64_t chunk_bytes = panels * width * groups_of(kChunkInputs, type) * 4;
  const torch::Tensor packed = torch::empty({chunks * chunk_bytes}, at::kByte);
  auto inputs_of = [&](int64_t chunk) {
    return std::min(kChunkInputs, weight.inputs - chunk * kChunkInputs);
  };
  auto panels_of_chunk = [&](int64_t chunk) {
    return static_cast<char*>(packed.data_ptr()) + chunk * chunk_bytes;
  };
  parallel_rows(chunks, kChunkInputs * weight.outputs, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      PackPanelsArgs part = weight;
      part.from = weight_at(weight, 0, chunk * kChunkInputs, type);
      part.inputs = inputs_of(chunk);
      part.panels = panels_of_chunk(chunk);
      packing_of(type)(part, 0, panels);
    }
  });
  const bool adds = into.defined() && type == at::kFloat;
  const torch::Tensor sums =
      adds ? into : torch::empty({rows, weight.outputs}, x.options().dtype(at::kFloat));
  PackedProductArgs args{};
  args.panel_outputs = width;
  args.x_stride = x.size(1) * x.element_size();
  args.outputs = args.out_stride = weight.outputs;
  args.out = sums.data_ptr();
  const PackedProductFunction kernel = product_of(type);
  parallel_rows(rows, weight.inputs, [&](int64_t begin, int64_t end) {
    PackedProductArgs own = args;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      own.x =
          static_cast<const char*>(x.const_data_ptr()) + chunk * kChunkInputs * x.element_size();
      own.groups = groups_of(inputs_of(chunk), type);
      own.panels = panels_of_chunk(chunk);
      own.end = chunk == 0 && !adds ? ProductEnd::kStore : ProductEnd::kAdd;
      kernel(own, {begin, end, 0, panels});
    }
  });
  return into.defined() && !adds ? into.add_(sums) : sums.to(type);
}

// Returns x [rows, inputs] times what `weight` describes: [rows, outputs], or added to `into`.
torch::Tensor multiply(const torch::Tensor& x, PackPanelsArgs weight, const torch::Tensor& into) {
  const at::ScalarType type = x.scalar_type();
  const int64_t rows = x.size(0), groups = groups_of(weight.inputs, type);
  const int64_t width = weight.panel_outputs = kernels().packed_product.tile_outputs;
  const int64_t panels = panels_of(weight.outputs, width);
  // A narrow panel has to stay in a small cache.
  const int64_t most = width < kPanelOutputs ? kChunkInputs : kManyInputs;
  if (weight.inputs > most) return multiply_by_chunks(x, weight, into);
  torch::Tensor y = into.defined() ? into : torch::empty({rows, weight.outputs}, x.options());
  PackedProductArgs args{};
  args.x = x.const_data_ptr();
  args.x_stride = x.size(1) * x.element_size();
  args.groups = groups;
  args.panel_outputs = width;
  args.outputs = weight.outputs;
  args.end = into.defined() ? ProductEnd::kAdd : ProductEnd::kStore;
  args.out_is_bf16 = type == at::kBFloat16;
  args.out = y.data_ptr();
  args.out_stride = weight.outputs;
  if (weight.outputs * weight.inputs > kManyWeights) {
    multiply_by_blocks(args, rows, weight, type);
    return y;
  }
  const torch::Tensor packed = memory_for(weight.outputs, weight.inputs, type, width);
  args.panels = weight.panels = packed.data_ptr();
  const auto pack = packing_of(type);
  parallel_rows(panels, width * weight.inputs,
                [&](int64_t begin, int64_t end) { pack(weight, begin, end); });
  const PackedProductFunction kernel = product_of(type);
  if (rows < kFewRows * at::get_num_threads()) {
    parallel_rows(panels, width * rows, [&](int64_t begin, int64_t end) {
      PackedProductArgs own = args;
      own.out = static_cast<char*>(args.out) + begin * width * y.element_size();
      kernel(own, {0, rows, begin, end});
    });
    return y;
  }
  parallel_rows(rows, weight.outputs, [&](int64_t begin, int64_t end) {
    kernel(args, {begin, end, 0, panels});
  });
  return y;
}

// d_y and x of a gradient, and the part of the gradient that one thread computes.
struct GradientPart {
  const torch::Tensor &gradient, &d_y, &x;
  int64_t output_begin, output_end;
  int64_t input_begin, input_end;
};

// Packs the columns [begin, begin + count) of the rows [first, first + rows) of t into panels.
void pack_columns(const torch::Tensor& t, int64_t first, int64_t rows, int64_t begin,
                  PackPanelsArgs args) {
  const int64_t width = t.size(1);
  args.from =
      static_cast<const char*>(t.const_data_ptr()) + (first * width + begin) * t.element_size();
  args.inputs = rows;
  args.output_stride = 1;
  args.input_stride = width;
  packing_of(t.scalar_type())(args, 0, panels_of(args.outputs));
}

// Works in chunks of rows, of which a panel of x stays in the cache, and in them by as many outputs
// as stay in the cache while all panels of x pass.
void add_part(const GradientPart& part) {
  const at::ScalarType type = part.x.scalar_type();
  const int64_t rows = part.x.size(0), inputs_of_row = part.x.size(1);
  const int64_t inputs = part.input_end - part.input_begin;
  const int64_t most = kCachedBytes / (kPanelOutputs * part.x.element_size());
  const int64_t chunk = std::min(most, rows);
  const int64_t panel_bytes = groups_of(chunk, type) * kPanelOutputs * 4;
  const int64_t block = std::max<int64_t>(1, kCachedBytes / panel_bytes) * kPanelOutputs;
  const torch::Tensor left = memory_for(block, chunk, type);
  const torch::Tensor right = memory_for(inputs, chunk, type);
  PackedProductArgs args{};
  args.x_stride = 4;
  args.x_step = kPanelOutputs * 4;
  args.panels = right.const_data_ptr();
  args.outputs = inputs;
  args.end = ProductEnd::kAdd;
  args.out_stride = inputs_of_row;
  const PackedProductFunction kernel = product_of(type);
  for (int64_t first = 0; first < rows; first += chunk) {
    const int64_t count = std::min(chunk, rows - first);
    args.groups = groups_of(count, type);
    pack_columns(part.x, first, count, part.input_begin,
                 {nullptr, inputs, 0, 0, 0, right.data_ptr()});
    for (int64_t output = part.output_begin; output < part.output_end; output += block) {
      const int64_t outputs = std::min(block, part.output_end - output);
      pack_columns(part.d_y, first, count, output, {nullptr, outputs, 0, 0, 0, left.data_ptr()});
      float* gradient = pointer<float>(part.gradient) + output * inputs_of_row + part.input_begin;
      for (int64_t panel = 0; panel < panels_of(inputs); ++panel) {
        for (int64_t o = 0; o < outputs; o += kPanelOutputs) {
          args.x = static_cast<const char*>(left.const_data_ptr()) + o * args.groups * 4;
          args.out = gradient + o * inputs_of_row + panel * kPanelOutputs;
          kernel(args, {0, std::min(kPanelOutputs, outputs - o), panel, panel + 1});
        }
      }
    }
  }
}

void check_alike(const torch::Tensor& a, const torch::Tensor& b) {
  TORCH_CHECK(a.dim() == 2 && b.dim() == 2 && a.is_contiguous() && b.is_contiguous() &&
                  a.scalar_type() == b.scalar_type() &&
                  (a.scalar_type() == at::kFloat || a.scalar_type() == at::kBFloat16),
              "a product of ", a.scalar_type(), " ", a.sizes(), " and ", b.scalar_type(), " ",
              b.sizes(), ", expected dense fp32 or bf16 matrices");
}

// Whether a product of x with a weight of this size is one that these kernels take.
bool fits(const torch::Tensor& x, const torch::Tensor& weight) {
  return x.is_cpu() && x.is_contiguous() && weight.is_contiguous() && x.size(0) >= kFewRows &&
         x.size(1) % inputs_in_group(x.scalar_type()) == 0 &&
         (weight.numel() <= kManyWeights || x.size(0) >= kManyRows);
}

}  // namespace

bool own_gradients_pay(at::ScalarType type) {
  if (!is_amd()) return false;
  const std::string_view isa = kernels().isa;
  return (type == at::kFloat && (isa == "avx512" || isa == "avx512_dot")) ||
         (type == at::kBFloat16 && isa == "avx512_dot");
}

bool own_products_pay(at::ScalarType type) {
  return own_gradients_pay(type) ||
         (is_amd() && type == at::kFloat && kernels().isa == std::string_view("avx2"));
}

bool takes_own_product(const torch::Tensor& x, const torch::Tensor& weight) {
  // With only 64 inputs, bf16 sums are so short that writing them is most of the work.
  if (x.scalar_type() == at::kBFloat16 && x.size(1) <= 64 && weight.numel() > 64 * 64) return false;
  return own_products_pay(x.scalar_type()) && fits(x, weight);
}

bool takes_own_weight_gradient(const torch::Tensor& x, const torch::Tensor& gradient) {
  return own_gradients_pay(x.scalar_type()) && fits(x, gradient);
}

torch::Tensor own_product_transposed(const torch::Tensor& x, const torch::Tensor& weight) {
  RECORD_FUNCTION("lockstep::product_transposed", (std::vector<c10::IValue>{x, weight}));
  check_alike(x, weight);
  return multiply(
      x, {weight.const_data_ptr(), weight.size(0), weight.size(1), weight.size(1), 1, nullptr}, {});
}

torch::Tensor own_product(const torch::Tensor& d_y, const torch::Tensor& weight,
                          const torch::Tensor& into) {
  RECORD_FUNCTION("lockstep::product", (std::vector<c10::IValue>{d_y, weight}));
  check_alike(d_y, weight);
  if (into.defined()) check_alike(d_y, into);
  return multiply(
      d_y, {weight.const_data_ptr(), weight.size(1), weight.size(0), 1, weight.size(1), nullptr},
      into);
}

// The work is divided along the longer side of the gradient, in half panels.
void add_own_weight_gradient(const torch::Tensor& gradient, const torch::Tensor& d_y,
                             const torch::Tensor& x) {
  RECORD_FUNCTION("lockstep::weight_product", (std::vector<c10::IValue>{d_y, x}));
  check_alike(d_y, x);
  const int64_t outputs = d_y.size(1), inputs = x.size(1);
  TORCH_CHECK(
      gradient.is_contiguous() && gradient.numel() == outputs * inputs && d_y.size(0) == x.size(0),
      "weight gradient ", gradient.sizes(), " of ", d_y.sizes(), " and ", x.sizes());
  constexpr int64_t kUnit = kPanelOutputs / 2;
  const bool by_outputs = outputs >= inputs;
  const int64_t longer = std::max(outputs, inputs);
  parallel_rows((longer + kUnit - 1) / kUnit, x.size(0) * std::min(outputs, inputs),
                [&](int64_t begin, int64_t end) {
                  GradientPart part{gradient, d_y, x, 0, outputs, 0, inputs};
                  (by_outputs ? part.output_begin : part.input_begin) = begin * kUnit;
                  (by_outputs ? part.output_end : part.input_end) = std::min(longer, end * kUnit);
                  add_part(part);
                });
}

}  // namespace lockstep::detail
