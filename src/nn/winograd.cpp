#include "nn/winograd.h"

#include <string_view>

#include "nn/fused.h"
#include "nn/own_product.h"

namespace lockstep::detail {
namespace {

constexpr int64_t kPanel = kPanelOutputs;
constexpr int64_t kPad = 32;  // numbers: keeps the places off the same cache lines

template <class T>
constexpr int64_t kGroup = 4 / sizeof(T);  // as in packed_product.h

// Returns the numbers from one place of a transformed weight to the next.
int64_t weight_place(int64_t inputs) { return inputs * kPanel + kPad; }

const WinogradKernels<float>& winograd_kernels(float) { return kernels().winograd_fp32; }
const WinogradKernels<Bf16>& winograd_kernels(Bf16) { return kernels().winograd_bf16; }
template <class T>
PackedProductFunction product_of() {
  const PackedProductKernels& table = kernels().packed_product;
  return std::is_same_v<T, float> ? table.fp32 : table.bf16;
}

template <class T>
constexpr at::ScalarType kType = std::is_same_v<T, float> ? at::kFloat : at::kBFloat16;

// Calls f with a value of the element type.
template <class F>
void with_winograd_type(at::ScalarType type, const F& f) {
  if (type == at::kFloat) return f(float{});
  TORCH_CHECK(type == at::kBFloat16, "no Winograd kernel for ", type);
  f(Bf16{});
}

WinogradImages images_of(const torch::Tensor& x) {
  return {x.size(0), x.size(2), x.size(3), x.size(1)};
}

// Returns the squares of a block: few enough for their transforms to stay in the cache, except with
// many channels, whose weight would otherwise be read too often.
template <class T>
int64_t block_squares(int64_t channels) {
  constexpr int64_t kBytes = 1 << 19, kMost = 64, kLeast = 24;
  const int64_t fitting = kBytes / (kWinogradPlaces * channels * sizeof(T));
  if (channels >= 256) return kMost;
  return std::max(kLeast, std::min(kMost, fitting));
}

struct Block {
  int64_t begin, end;              // squares
  int64_t panel_begin, panel_end;  // of outputs
};

struct Memory {  // for one block, [36, ...]
  torch::Tensor patches, products;
};

template <class T>
struct Forward {
  const T* x;
  const T* zeros;
  WinogradImages from, to;
  const T* weight;
  T* y;
  bool adds;
  float *first, *sum, *squares;  // [blocks, outputs], or null

  int64_t size() const { return block_squares<T>(from.channels); }

  void run(const Block& block, const Memory& memory) const {
    const WinogradKernels<T>& kernel = winograd_kernels(T{});
    const PackedProductFunction product = product_of<T>();
    const int64_t inputs = from.channels, count = block.end - block.begin;
    T* patches = pointer<T>(memory.patches);
    float* products = pointer<float>(memory.products);
    const WinogradStrides rows{count * inputs + kPad, kPanel, inputs};
    kernel.patches({x, from, 0, inputs, zeros, patches, rows, false}, block.begin, block.end);
    const WinogradStrides sums{count * kPanel + kPad, 0, kPanel};
    PackedProductArgs args{};
    args.x_stride = inputs * static_cast<int64_t>(sizeof(T));
    args.groups = inputs / kGroup<T>;
    args.outputs = kPanel;
    args.end = ProductEnd::kStore;
    args.out_stride = kPanel;
    for (int64_t panel = block.panel_begin; panel < block.panel_end; ++panel) {
      for (int64_t place = 0; place < kWinogradPlaces; ++place) {
        args.x = patches + place * rows.place;
        args.panels = weight + (panel * kWinogradPlaces + place) * weight_place(inputs);
        args.out = products + place * sums.place;
        product(args, {0, count, 0, 1});
      }
      WinogradResultArgs<T> result{products, sums,    y,       to,     panel * kPanel,
                                   adds,     nullptr, nullptr, nullptr};
      if (sum != nullptr) {
        const int64_t at = block.begin / size() * to.channels + panel * kPanel;
        result.first = first + at;
        result.sum = sum + at;
        result.squares = squares + at;
      }
      kernel.result(result, block.begin, block.end);
    }
  }

  Memory memory() const {
    const auto place = [&](int64_t width, at::ScalarType type) {
      return torch::empty({kWinogradPlaces, size() * width + kPad}, type);
    };
    return {place(from.channels, kType<T>), place(kPanel, at::kFloat)};
  }
};

// Returns the number of pixels in the squares [begin, end).
int64_t pixels_of(const WinogradImages& shape, int64_t begin, int64_t end) {
  int64_t pixels = 0;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t line = i / shape.columns() % shape.lines() * kWinogradSquare;
    const int64_t column = i % shape.columns() * kWinogradSquare;
    pixels += std::min(kWinogradSquare, shape.height - line) *
              std::min(kWinogradSquare, shape.width - column);
  }
  return pixels;
}

// Runs the blocks of squares and, where they are fewer than the threads, splits the outputs too.
template <class T>
void run_blocks(const Forward<T>& forward) {
  const int64_t all = forward.to.squares(), size = forward.size();
  const int64_t blocks = (all + size - 1) / size, panels = forward.to.channels / kPanel;
  const int64_t threads = at::get_num_threads();
  const int64_t splits = std::min(panels, (threads + blocks - 1) / blocks);
  at::parallel_for(0, blocks * splits, 1, [&](int64_t begin, int64_t end) {
    const Memory memory = forward.memory();
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / splits, split = i % splits;
      forward.run({block * size, std::min(all, (block + 1) * size), split * panels / splits,
                   (split + 1) * panels / splits},
                  memory);
    }
  });
}

// Computes the weight's gradient one block of squares after the other. A block is first
// transformed, in parallel over squares, then multiplied, in parallel over places, so no sum
// depends on the number of threads.
template <class T>
struct Gradient {
  const T* d_y;
  const T* x;
  const T* zeros;  // as many as the larger number of channels
  WinogradImages from, to;
  float* gradient;

  void add() const {
    const int64_t inputs = from.channels, outputs = to.channels, all = from.squares();
    const int64_t size = std::min(block_of(inputs, outputs), all);
    const int64_t most = groups_of(size) * kGroup<T>;
    const auto place = [&](int64_t width, at::ScalarType type) {
      return torch::empty({kWinogradPlaces, width}, type);
    };
    const Memory memory{place(most * inputs + kPad, kType<T>),
                        place(most * outputs + kPad, kType<T>),
                        place(outputs * inputs, at::kFloat)};
    for (int64_t first = 0; first < all; first += size) {
      const int64_t last = std::min(all, first + size);
      transform(memory, first, last);
      multiply(memory, groups_of(last - first), first == 0);
    }
    const WinogradGradientArgs args{pointer<float>(memory.sums), outputs, inputs, gradient};
    parallel_rows(outputs, inputs * kWinogradPlaces, [&](int64_t begin, int64_t end) {
      kernels().add_winograd_gradient(args, begin, end);
    });
  }

 private:
  struct Memory {  // [36, ...]
    torch::Tensor patches, squares, sums;
  };

  static int64_t groups_of(int64_t squares) { return (squares + kGroup<T> - 1) / kGroup<T>; }

  // Returns the squares of a block: enough for about as many transformed numbers as there are sums,
  // which each block reads and writes.
  static int64_t block_of(int64_t inputs, int64_t outputs) {
    constexpr int64_t kLeast = 128, kMost = 256;
    const int64_t alike = inputs * outputs / (inputs + outputs) / kLeast * kLeast;
    return std::clamp(alike, kLeast, kMost);
  }

  void transform(const Memory& memory, int64_t first, int64_t last) const {
    const WinogradKernels<T>& kernel = winograd_kernels(T{});
    const int64_t inputs = from.channels, outputs = to.channels, groups = groups_of(last - first);
    const int64_t group = kPanel * kGroup<T>;
    const WinogradStrides panels{memory.patches.size(1), groups * group, group};
    const WinogradStrides rows{memory.squares.size(1), group, outputs * kGroup<T>};
    T* patches = pointer<T>(memory.patches);
    T* squares = pointer<T>(memory.squares);
    constexpr int64_t kFewGroups = 8;
    at::parallel_for(0, groups, kFewGroups, [&](int64_t begin, int64_t end) {
      const int64_t b = first + begin * kGroup<T>, e = std::min(last, first + end * kGroup<T>);
      kernel.patches({x, from, 0, inputs, zeros, patches + begin * panels.square, panels, true}, b,
                     e);
      kernel.squares({d_y, to, 0, outputs, zeros, squares + begin * rows.square, rows, true}, b, e);
    });
  }

  void multiply(const Memory& memory, int64_t groups, bool is_first) const {
    const PackedProductFunction product = product_of<T>();
    const int64_t inputs = from.channels, outputs = to.channels;
    PackedProductArgs args{};
    args.x_stride = 4;
    args.x_step = outputs * 4;
    args.groups = groups;
    args.outputs = kPanel;
    args.end = is_first ? ProductEnd::kStore : ProductEnd::kAdd;
    args.out_stride = inputs;
    at::parallel_for(0, kWinogradPlaces, 1, [&](int64_t begin, int64_t end) {
      PackedProductArgs own = args;
      for (int64_t place = begin; place < end; ++place) {
        own.x = pointer<T>(memory.squares) + place * memory.squares.size(1);
        for (int64_t panel = 0; panel < inputs / kPanel; ++panel) {
          own.panels = pointer<T>(memory.patches) + place * memory.patches.size(1) +
                       panel * groups * kPanel * kGroup<T>;
          own.out = pointer<float>(memory.sums) + place * memory.sums.size(1) + panel * kPanel;
          product(own, {0, outputs, 0, 1});
        }
      }
    });
  }
};

void check_weight(const torch::Tensor& weight) {
  TORCH_CHECK(weight.dim() == 4 && weight.is_contiguous() && weight.size(0) % kPanel == 0 &&
                  weight.size(1) % kPanel == 0 && weight.size(2) == 3 && weight.size(3) == 3,
              "Winograd: the weight is ", weight.sizes());
}

// On ARM it was not measured.
bool winograd_pays(at::ScalarType type) {
  if (type != at::kFloat) return own_gradients_pay(type);
  const std::string_view isa = kernels().isa;
  return isa != "generic" && isa != "neon_dot";
}

bool has_winograd(const Convolution& convolution, const torch::Tensor& x) {
  return convolution.kernel() == 3 && convolution.stride == 1 && convolution.padding == 1 &&
         convolution.inputs() % kPanel == 0 && convolution.outputs() % kPanel == 0 &&
         x.numel() > 0 && winograd_pays(x.scalar_type());
}

}  // namespace

// For few squares the transformation of the weight takes as long as the products that it saves.
bool takes_winograd(const Convolution& convolution, const torch::Tensor& x) {
  int64_t few = 64;
  if (own_gradients_pay(x.scalar_type())) few = x.scalar_type() == at::kFloat ? 16 : 32;
  return has_winograd(convolution, x) && images_of(x).squares() >= few;
}

bool takes_winograd_gradient(const Convolution& convolution, const torch::Tensor& x) {
  const int64_t few = x.scalar_type() == at::kFloat ? 16 : 32;
  return has_winograd(convolution, x) && images_of(x).squares() >= few;
}

namespace {

// `into` is that of winograd_convolve_backward.
torch::Tensor convolve_squares(const torch::Tensor& x, const torch::Tensor& weight, bool backward,
                               PixelSums* sums, const torch::Tensor& into) {
  check_weight(weight);
  const int64_t inputs = weight.size(backward ? 0 : 1), outputs = weight.size(backward ? 1 : 0);
  TORCH_CHECK(x.size(1) == inputs, "Winograd: x is ", x.sizes(), ", the weight ", weight.sizes());
  const torch::Tensor rows = pixel_rows(x);
  const torch::Tensor y =
      into.defined() ? pixel_rows(into) : torch::empty({rows.size(0), outputs}, x.options());
  TORCH_CHECK(
      y.size(0) == rows.size(0) && y.size(1) == outputs && y.scalar_type() == x.scalar_type(),
      "Winograd: a gradient of ", into.sizes(), " to add to one of ", rows.size(0), " pixels, ",
      outputs, " channels");
  const torch::Tensor packed =
      torch::empty({outputs / kPanel, kWinogradPlaces, weight_place(inputs)}, x.options());
  const torch::Tensor zeros = torch::zeros({inputs}, x.options());
  with_winograd_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const WinogradWeightArgs<T> pack{pointer<T>(weight), weight.size(0),     weight.size(1),
                                     backward,           pointer<T>(packed), weight_place(inputs)};
    at::parallel_for(0, outputs / kPanel, 1, [&](int64_t begin, int64_t end) {
      winograd_kernels(T{}).weight(pack, begin, end);
    });
    Forward<T> forward{
        pointer<T>(rows), pointer<T>(zeros), images_of(x), images_of(x), pointer<T>(packed),
        pointer<T>(y),    into.defined(),    nullptr,      nullptr,      nullptr};
    forward.to.channels = outputs;
    if (sums != nullptr) {
      const int64_t all = forward.to.squares(), size = forward.size();
      const int64_t blocks = (all + size - 1) / size;
      sums->values = torch::empty({3, blocks, outputs}, at::kFloat);
      forward.first = pointer<float>(sums->values);
      forward.sum = forward.first + blocks * outputs;
      forward.squares = forward.sum + blocks * outputs;
      sums->count.clear();
      for (int64_t block = 0; block < blocks; ++block) {
        const int64_t begin = block * size;
        sums->count.push_back(pixels_of(forward.to, begin, std::min(all, begin + size)));
      }
    }
    run_blocks(forward);
  });
  return image_of_rows(y, x.size(0), x.size(2), x.size(3));
}

}  // namespace

torch::Tensor winograd_convolve(const torch::Tensor& x, const torch::Tensor& weight,
                                PixelSums* sums) {
  RECORD_FUNCTION("lockstep::winograd_convolve", {});
  return convolve_squares(x, weight, false, sums, {});
}

torch::Tensor winograd_convolve_backward(const torch::Tensor& d_y, const torch::Tensor& weight,
                                         const torch::Tensor& into) {
  RECORD_FUNCTION("lockstep::winograd_convolve_backward", {});
  return convolve_squares(d_y, weight, true, nullptr, into);
}

void add_winograd_gradient(const torch::Tensor& gradient, const torch::Tensor& d_y,
                           const torch::Tensor& x) {
  RECORD_FUNCTION("lockstep::winograd_gradient", {});
  check_weight(gradient);
  const int64_t outputs = gradient.size(0), inputs = gradient.size(1);
  TORCH_CHECK(x.size(1) == inputs && d_y.size(1) == outputs && x.scalar_type() == d_y.scalar_type(),
              "Winograd: the gradient is ", gradient.sizes(), " of ", d_y.sizes(), " and ",
              x.sizes());
  const torch::Tensor zeros = torch::zeros({std::max(inputs, outputs)}, x.options());
  with_winograd_type(x.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const Gradient<T> all{pointer<T>(pixel_rows(d_y)),
                          pointer<T>(pixel_rows(x)),
                          pointer<T>(zeros),
                          images_of(x),
                          images_of(d_y),
                          pointer<float>(gradient)};
    all.add();
  });
}

}  // namespace lockstep::detail
