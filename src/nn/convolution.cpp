#include "nn/convolution.h"

#include <algorithm>
#include <cstring>

#include "nn/fused.h"
#include "nn/own_product.h"
#include "nn/plain.h"
#include "nn/product.h"
#include "nn/weight_gradient.h"
#include "nn/winograd.h"

namespace lockstep {

torch::Tensor plain_convolution(const torch::Tensor& x, const Convolution& convolution,
                                at::ScalarType compute) {
  TORCH_CHECK(x.dim() == 4 && x.size(1) == convolution.inputs() && x.scalar_type() == compute &&
                  convolution.size_after(x.size(2)) > 0 && convolution.size_after(x.size(3)) > 0,
              "convolution ", convolution.weight->name, ": x is ", x.scalar_type(), " ", x.sizes(),
              ", expected ", compute, " [n, ", convolution.inputs(), ", height, width]");
  const torch::Tensor weight = detail::plain_weight(*convolution.weight, compute);
  const std::vector<int64_t> stride(2, convolution.stride), padding(2, convolution.padding);
  if (detail::widens(x)) {
    return at::conv2d(detail::wide(x), detail::wide(weight), {}, stride, padding).to(compute);
  }
  return at::conv2d(x, weight, {}, stride, padding);
}

namespace detail {
namespace {

torch::Tensor librarys_convolution(const torch::Tensor& x, const torch::Tensor& used,
                                   const Convolution& convolution) {
  const std::vector<int64_t> stride(2, convolution.stride), padding(2, convolution.padding);
  return channels_last(
      at::convolution(x, used, std::nullopt, stride, padding, {1, 1}, false, {0, 0}, 1));
}

// A 1 x 1 convolution is a product of the rows of pixels with the weight.
bool is_product(const Convolution& convolution) {
  return convolution.kernel() == 1 && convolution.stride == 1;
}

torch::Tensor matrix(const torch::Tensor& weight) {
  return weight.view({weight.size(0), weight.size(1)});
}

// Returns libtorch's gradients of x and of the weight, where wanted.
std::tuple<torch::Tensor, torch::Tensor> backward(const torch::Tensor& d_y, const torch::Tensor& x,
                                                  const torch::Tensor& used,
                                                  const Convolution& convolution,
                                                  std::array<bool, 2> wanted) {
  const std::vector<int64_t> stride(2, convolution.stride), padding(2, convolution.padding);
  auto [d_x, d_weight, d_bias] =
      at::convolution_backward(d_y, x, used, std::nullopt, stride, padding, {1, 1}, false, {0, 0},
                               1, {wanted[0], wanted[1], false});
  return {d_x, d_weight};
}

// Of `x` only the sizes [n, in, height, width] are read.
torch::Tensor librarys_gradient(const torch::Tensor& d_y, const torch::Tensor& used,
                                at::IntArrayRef sizes, const Convolution& convolution) {
  const torch::Tensor x =
      torch::empty(sizes, d_y.options().memory_format(at::MemoryFormat::ChannelsLast));
  return channels_last(std::get<0>(backward(d_y, x, used, convolution, {true, false})));
}

// Of the weight only the sizes [out, in, kernel, kernel] are read.
torch::Tensor librarys_weight_gradient(const torch::Tensor& d_y, const torch::Tensor& x,
                                       at::IntArrayRef sizes, const Convolution& convolution) {
  const torch::Tensor used =
      torch::empty(sizes, x.options().memory_format(at::MemoryFormat::ChannelsLast));
  return channels_last(std::get<1>(backward(d_y, x, used, convolution, {false, true})));
}

}  // namespace

torch::Tensor pixel_rows(const torch::Tensor& x) {
  const torch::Tensor pixels = x.permute({0, 2, 3, 1});
  TORCH_CHECK(pixels.is_contiguous(), "images of ", x.sizes(), " without channels last in memory");
  return pixels.view({x.size(0) * x.size(2) * x.size(3), x.size(1)});
}

torch::Tensor image_of_rows(const torch::Tensor& rows, int64_t n, int64_t height, int64_t width) {
  return rows.view({n, height, width, rows.size(1)}).permute({0, 3, 1, 2});
}

namespace {

// A 1 x 1 convolution with a stride equals one without, over the pixels that it reads.
bool skips_pixels(const Convolution& convolution) {
  return convolution.kernel() == 1 && convolution.stride > 1 && convolution.padding == 0;
}
Convolution single_pixels(Convolution convolution) {
  convolution.stride = 1;
  return convolution;
}
torch::Tensor every(const torch::Tensor& x, int64_t stride) {
  return x.slice(2, 0, std::nullopt, stride).slice(3, 0, std::nullopt, stride);
}
torch::Tensor read_pixels(const torch::Tensor& x, int64_t stride) {
  return detail::channels_last(every(x, stride));
}

bool uses_tiles(const Convolution& convolution, at::ScalarType compute) {
  const int64_t kernel = convolution.kernel(), stride = convolution.stride;
  return kernels().tile_convolution.convolve != nullptr && compute == at::kBFloat16 &&
         ((kernel == 1 && stride == 1) || (kernel == 3 && stride <= 2)) &&
         convolution.padding == kernel / 2 && convolution.inputs() % 32 == 0 &&
         convolution.outputs() % 32 == 0;
}

constexpr int64_t kAlignment = 64;
torch::Tensor aligned_bytes(int64_t count) { return torch::empty({count + kAlignment}, at::kByte); }
void* first_aligned(const torch::Tensor& memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory.data_ptr());
  return reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

// Runs the chunks and, where they are fewer than the threads, splits the outputs too.
void run_parts(const TileConvolutionArgs& args) {
  const TileConvolutionKernels& kernel = kernels().tile_convolution;
  const int64_t chunks = kernel.chunks(args), units = args.outputs / 32;
  const int64_t threads = at::get_num_threads();
  const int64_t splits = std::min(units, (threads + chunks - 1) / chunks);
  at::parallel_for(0, chunks * splits, 1, [&](int64_t begin, int64_t end) {
    const torch::Tensor scratch = aligned_bytes(kernel.scratch_bytes(args));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t chunk = i / splits, split = i % splits;
      kernel.convolve(
          args, {chunk, chunk + 1, split * units / splits * 32, (split + 1) * units / splits * 32},
          first_aligned(scratch));
    }
  });
}

struct TileUse {
  int64_t stride;
  bool backward;       // convolves d_y to the gradient of x; stride 1 only
  torch::Tensor into;  // if defined, the result is added to it
};

// Convolves x [n, in, height, width] with the weight.
torch::Tensor convolve_tiles(const torch::Tensor& x, const torch::Tensor& weight,
                             const TileUse& use, PixelSums* sums) {
  const int64_t inputs = x.size(1), outputs = weight.size(use.backward ? 1 : 0);
  const int64_t taps = weight.size(2) * weight.size(3);
  const int64_t height = (x.size(2) - 1) / use.stride + 1, width = (x.size(3) - 1) / use.stride + 1;
  const torch::Tensor rows = pixel_rows(x);
  const torch::Tensor y = use.into.defined()
                              ? pixel_rows(use.into)
                              : torch::empty({x.size(0) * height * width, outputs}, x.options());
  const torch::Tensor packed = aligned_bytes(weight.numel() * 2);
  const TileWeightArgs pack{
      weight.const_data_ptr(), weight.size(0), weight.size(1), taps, use.backward,
      first_aligned(packed)};
  const TileConvolutionKernels& kernel = kernels().tile_convolution;
  parallel_rows(outputs / 16, 16 * inputs * taps,
                [&](int64_t begin, int64_t end) { kernel.pack(pack, begin * 16, end * 16); });
  TileConvolutionArgs args{};
  args.x = rows.const_data_ptr();
  args.images = x.size(0);
  args.height = x.size(2);
  args.width = x.size(3);
  args.inputs = inputs;
  args.outputs = outputs;
  args.taps = taps;
  args.stride = use.stride;
  args.weight = pack.packed;
  args.y = y.data_ptr();
  args.adds = use.into.defined();
  if (sums != nullptr) {
    const int64_t chunks = kernel.chunks(args);
    sums->values = torch::empty({3, chunks, outputs}, at::kFloat);
    sums->count.resize(chunks);
    args.first = pointer<float>(sums->values);
    args.sum = args.first + chunks * outputs;
    args.squares = args.sum + chunks * outputs;
    args.pixels = sums->count.data();
  }
  run_parts(args);
  return image_of_rows(y, x.size(0), height, width);
}

// Gathers what each pixel of y is made of into rows [n * height * width of y, kernel * kernel *
// in]: pixels of x [n, in, height, width], tap by tap, with zeros outside the image.
void gather_taps(const torch::Tensor& x, const Convolution& convolution,
                 const torch::Tensor& rows) {
  const int64_t kernel = convolution.kernel(), lines = x.size(2), columns = x.size(3);
  const int64_t height = convolution.size_after(lines), width = convolution.size_after(columns);
  const torch::Tensor pixels = pixel_rows(x);
  const int64_t bytes = x.size(1) * x.element_size();
  const auto* from = static_cast<const char*>(pixels.const_data_ptr());
  auto* to = static_cast<char*>(rows.data_ptr());
  parallel_rows(x.size(0) * height, width * rows.size(1), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      char* at = to + row * width * kernel * kernel * bytes;
      const int64_t top = row % height * convolution.stride - convolution.padding;
      for (int64_t column = 0; column < width; ++column) {
        const int64_t left = column * convolution.stride - convolution.padding;
        for (int64_t tap = 0; tap < kernel * kernel; ++tap, at += bytes) {
          const int64_t line = top + tap / kernel, pixel = left + tap % kernel;
          if (line < 0 || line >= lines || pixel < 0 || pixel >= columns) {
            std::memset(at, 0, bytes);
          } else {
            std::memcpy(at, from + ((row / height * lines + line) * columns + pixel) * bytes,
                        bytes);
          }
        }
      }
    }
  });
}

// gradient [out, in, kernel, kernel] += d_weight, which lies in memory as
// [out, kernel, kernel, in].
void add_taps(const torch::Tensor& gradient, const torch::Tensor& d_weight) {
  const int64_t taps = gradient.size(2) * gradient.size(3), inputs = gradient.size(1);
  with_type(d_weight.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    const AddTapsArgs<T> args{pointer<T>(d_weight), pointer<float>(gradient), inputs, taps};
    const auto kernel = kernels().typed<T>().add_taps;
    parallel_rows(gradient.size(0), inputs * taps,
                  [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
  });
}

// Whether products over gathered taps were measured to be faster than libtorch's gradient.
bool gathers_pixels(const Convolution& convolution, const torch::Tensor& x) {
  constexpr int64_t kFewInputs = 32;
  return x.scalar_type() == at::kBFloat16 && own_gradients_pay(x.scalar_type()) &&
         convolution.inputs() >= kFewInputs && convolution.inputs() % 2 == 0 && x.numel() > 0;
}

// Adds the weight's gradient to `gradient`, a few images at a time: gathered taps are up to
// kernel^2 times as large as x.
void add_gathered_gradient(const torch::Tensor& gradient, const torch::Tensor& d_y,
                           const torch::Tensor& x, const Convolution& convolution) {
  constexpr int64_t kBytes = int64_t{32} << 20;
  const int64_t images = x.size(0), pixels = d_y.size(2) * d_y.size(3);
  const int64_t taps = convolution.kernel() * convolution.kernel() * x.size(1);
  const int64_t step = std::clamp(kBytes / (pixels * taps * x.element_size()), int64_t{1}, images);
  const torch::Tensor memory = torch::empty({step * pixels, taps}, x.options());
  const torch::Tensor d_weight = torch::zeros({d_y.size(1), taps}, at::kFloat);
  for (int64_t first = 0; first < images; first += step) {
    const int64_t count = std::min(step, images - first);
    const torch::Tensor rows = memory.narrow(0, 0, count * pixels);
    gather_taps(x.narrow(0, first, count), convolution, rows);
    add_own_weight_gradient(d_weight, pixel_rows(d_y.narrow(0, first, count)), rows);
  }
  add_taps(gradient, d_weight);
}

}  // namespace

torch::Tensor weight_for_use(const Convolution& convolution, const torch::Tensor& x) {
  const at::ScalarType compute = x.scalar_type();
  const torch::Tensor weight = convolution.weight->as(compute).detach();
  const int64_t taps = weight.size(2) * weight.size(3), inputs = weight.size(1);
  if (!x.is_cpu()) return channels_last(weight);
  if (taps == 1 || uses_tiles(convolution, compute) || takes_winograd(convolution, x)) {
    return weight;
  }
  RECORD_FUNCTION("lockstep::weight_for_use", {});
  torch::Tensor used =
      torch::empty(weight.sizes(), weight.options().memory_format(at::MemoryFormat::ChannelsLast));
  with_type(compute, [&](auto zero) {
    using T = decltype(zero);
    const MoveTapsArgs<T> args{pointer<T>(weight), pointer<T>(used), inputs, taps};
    const auto kernel = kernels().typed<T>().move_taps;
    parallel_rows(weight.size(0), inputs * taps,
                  [&](int64_t begin, int64_t end) { kernel(args, begin, end); });
  });
  return used;
}

torch::Tensor convolve(const torch::Tensor& x, const torch::Tensor& used,
                       const Convolution& convolution, PixelSums* sums) {
  RECORD_FUNCTION("lockstep::convolve", {});
  if (!x.is_cpu()) return librarys_convolution(x, used, convolution);
  if (skips_pixels(convolution)) {
    return convolve(read_pixels(x, convolution.stride), used, single_pixels(convolution), sums);
  }
  if (uses_tiles(convolution, x.scalar_type()) && x.numel() > 0) {
    return convolve_tiles(x, used, {convolution.stride, false, {}}, sums);
  }
  if (takes_winograd(convolution, x)) {
    return winograd_convolve(x, used.contiguous(), sums);  // a copy only of what was widened
  }
  if (is_product(convolution)) {
    const torch::Tensor y = product_transposed(pixel_rows(x), matrix(used));
    return image_of_rows(y, x.size(0), x.size(2), x.size(3));
  }
  if (detail::widens(x))
    return convolve(detail::wide(x), detail::wide(used), convolution, nullptr).to(x.scalar_type());
  return librarys_convolution(x, used, convolution);
}

torch::Tensor convolve_backward(const torch::Tensor& d_y, const torch::Tensor& used,
                                at::IntArrayRef sizes, const Convolution& convolution,
                                torch::Tensor into) {
  RECORD_FUNCTION("lockstep::convolve_backward", {});
  TORCH_CHECK(!into.defined() || (into.sizes() == sizes && into.scalar_type() == d_y.scalar_type()),
              "a gradient of ", into.sizes(), " to add to one of ", sizes);
  if (!d_y.is_cpu()) {
    const torch::Tensor d_x = librarys_gradient(d_y, used, sizes, convolution);
    return into.defined() ? into.add_(d_x) : d_x;
  }
  if (skips_pixels(convolution)) {
    if (!into.defined()) {
      into = torch::zeros(sizes, d_y.options().memory_format(at::MemoryFormat::ChannelsLast));
    }
    const std::vector<int64_t> read{d_y.size(0), sizes[1], d_y.size(2), d_y.size(3)};
    every(into, convolution.stride)
        .add_(convolve_backward(d_y, used, read, single_pixels(convolution)));
    return into;
  }
  if (convolution.stride == 1 && uses_tiles(convolution, d_y.scalar_type()) && d_y.numel() > 0) {
    return convolve_tiles(d_y, used, {1, true, into}, nullptr);
  }
  if (takes_winograd(convolution, d_y)) {
    return winograd_convolve_backward(d_y, used.contiguous(), into);
  }
  if (is_product(convolution)) {
    const torch::Tensor rows = into.defined() ? pixel_rows(into) : torch::Tensor();
    const torch::Tensor d_x = product(pixel_rows(d_y), matrix(used), rows);
    return image_of_rows(d_x, sizes[0], sizes[2], sizes[3]);
  }
  if (into.defined()) return into.add_(convolve_backward(d_y, used, sizes, convolution));
  if (detail::widens(d_y)) {
    return convolve_backward(detail::wide(d_y), detail::wide(used), sizes, convolution)
        .to(d_y.scalar_type());
  }
  return librarys_gradient(d_y, used, sizes, convolution);
}

void add_convolution_gradient(const torch::Tensor& gradient, const torch::Tensor& d_y,
                              const torch::Tensor& x, const Convolution& convolution) {
  RECORD_FUNCTION("lockstep::add_convolution_gradient", {});
  if (!x.is_cpu()) {
    gradient.add_(librarys_weight_gradient(d_y, x, gradient.sizes(), convolution));
    return;
  }
  if (skips_pixels(convolution)) {
    const torch::Tensor read = read_pixels(x, convolution.stride);
    return add_convolution_gradient(gradient, d_y, read, single_pixels(convolution));
  }
  if (is_product(convolution)) {
    add_weight_gradient(matrix(gradient), pixel_rows(d_y), pixel_rows(x));
    return;
  }
  if (convolution.kernel() == 3 && convolution.stride <= 2 && convolution.padding == 1 &&
      add_weight_gradient_packed(gradient, pixel_rows(d_y), pixel_rows(x),
                                 {x.size(0), x.size(2), x.size(3), 3, convolution.stride})) {
    return;
  }
  if (takes_winograd_gradient(convolution, x)) {
    add_winograd_gradient(gradient, d_y, x);
    return;
  }
  if (gathers_pixels(convolution, x)) {
    add_gathered_gradient(gradient, d_y, x, convolution);
    return;
  }
  if (detail::widens(x))
    return add_convolution_gradient(gradient, detail::wide(d_y), detail::wide(x), convolution);
  add_taps(gradient, librarys_weight_gradient(d_y, x, gradient.sizes(), convolution));
}

}  // namespace detail
}  // namespace lockstep
