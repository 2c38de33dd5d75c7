// Time of each operation of nn/, forward and backward, fused against plain, in the shapes of the
// small translation Transformer: width 256, 8 heads, feed-forward 1024, 2048 tokens in sentences of
// 8 to 24, vocabulary 6000, dropout 0.1; of BERT and ViT of width 768; of ResNets' convolutions
// with their batch norm and ReLU. One warm-up, then the median of many runs, the two sides in
// turns.
//
//   nn_ops [threads] [fp32|bf16]     both types without the second word
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "arrays/cpu_allocator.h"
#include "arrays/update.h"
#include "base/clock.h"
#include "base/statistics.h"
#include "data/images/image_resize.h"
#include "dist/gradients/powersgd.h"
#include "kernels/kernel_table.h"
#include "nn/attention.h"
#include "nn/conv_norm.h"
#include "nn/cross_entropy.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/layer_norm.h"
#include "nn/linear_epilogues.h"
#include "nn/pooling.h"

namespace lockstep {
namespace {

constexpr int64_t kTokens = 2048, kWidth = 256, kInner = 1024, kHeads = 8, kVocabulary = 6000;
constexpr int kRuns = 25;

double median_ms(const std::function<void()>& body) {
  body();
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const auto end = std::chrono::steady_clock::now();
    times.push_back(std::chrono::duration<double, std::milli>(end - start).count());
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

struct Bench {
  Parameters parameters;
  ParameterRef table, inner_weight, inner_bias, outer_weight, outer_bias, norm_weight, norm_bias;
  Segments segments;
  Dropout dropout;
  torch::Tensor positions, tokens, position;

  Bench() {
    table = parameters.add("table", {kVocabulary, kWidth}, normal(0.06));
    inner_weight = parameters.add("inner.weight", {kInner, kWidth}, xavier_uniform());
    inner_bias = parameters.add("inner.bias", {kInner}, zeros());
    outer_weight = parameters.add("outer.weight", {kWidth, kInner}, xavier_uniform());
    outer_bias = parameters.add("outer.bias", {kWidth}, zeros());
    norm_weight = parameters.add("norm.weight", {kWidth}, ones());
    norm_bias = parameters.add("norm.bias", {kWidth}, zeros());
    parameters.allocate(torch::kCPU, torch::kBFloat16, 1);
    std::vector<int32_t> lengths;
    for (int64_t left = kTokens; left > 0; left -= lengths.back()) {
      const auto length = static_cast<int64_t>(8 + lengths.size() * 7 % 17);
      lengths.push_back(static_cast<int32_t>(std::min(left, length)));
    }
    segments = make_segments(lengths, torch::kCPU);
    dropout.p = 0.1;
    dropout.key = dropout_key(1, 2, 3);
    dropout.rows = torch::arange(kTokens, torch::kInt64);
    positions = sinusoidal_positions(64, kWidth, torch::kCPU);
    tokens = torch::randint(kVocabulary, {kTokens}, torch::kInt64);
    position = torch::arange(kTokens, torch::kInt64) % 24;
  }
};

torch::Tensor input(int64_t width, at::ScalarType type) {
  return torch::randn({kTokens, width}).to(type).set_requires_grad(true);
}

using Op = std::function<torch::Tensor(const Numerics&)>;

// Plain and fused take turns, so that both see the same moments of the machine.
void report(const std::string& name, at::ScalarType compute, const Op& op, int runs = kRuns) {
  std::vector<double> ms[2];
  torch::Tensor gradient;
  for (int i = -1; i < runs; ++i) {
    for (bool fused : {false, true}) {
      const Numerics numerics{compute, fused};
      const auto start = std::chrono::steady_clock::now();
      torch::Tensor out = op(numerics);
      if (!gradient.defined()) gradient = torch::ones_like(out);
      out.backward(gradient);
      if (i >= 0) ms[fused].push_back(seconds_since(start) * 1e3);
    }
  }
  const double plain = median(ms[false]), own = median(ms[true]);
  fmt::print("{:<26} {:<5} {:>9.3f} {:>9.3f} {:>7.2f}x\n", name,
             compute == at::kFloat ? "fp32" : "bf16", plain, own, plain / own);
}

// A layer of a ResNet on 16 images: convolution, batch norm and ReLU.
void report_conv(const char* name, int64_t inputs, int64_t outputs, int64_t kernel, int64_t stride,
                 int64_t side, at::ScalarType type) {
  Parameters parameters;
  Convolution convolution{.stride = stride, .padding = kernel / 2};
  convolution.weight = parameters.add("conv", {outputs, inputs, kernel, kernel}, he_normal());
  const BatchNorm norm = add_batch_norm("norm", outputs, false, parameters);
  parameters.allocate(torch::kCPU, torch::kBFloat16, 1);
  const torch::Tensor x = torch::randn({16, inputs, side, side})
                              .to(type)
                              .contiguous(at::MemoryFormat::ChannelsLast)
                              .set_requires_grad(true);
  constexpr int kFewRuns = 7;
  report(
      name, type,
      [&](const Numerics& n) {
        return conv_norm(x, convolution, norm, {}, {n, true, {}});
      },
      kFewRuns);
}

void report_images(at::ScalarType type) {
  report_conv("conv 7x7/2 3 -> 64, 224", 3, 64, 7, 2, 224, type);
  report_conv("conv 1x1 64 -> 256, 56", 64, 256, 1, 1, 56, type);
  report_conv("conv 3x3 64 -> 64, 56", 64, 64, 3, 1, 56, type);
  report_conv("conv 3x3/2 128 -> 128, 56", 128, 128, 3, 2, 56, type);
  report_conv("conv 3x3 256 -> 256, 14", 256, 256, 3, 1, 14, type);
  report_conv("conv 1x1 1024 -> 256, 14", 1024, 256, 1, 1, 14, type);
  const torch::Tensor pixels = torch::randn({16, 64, 112, 112})
                                   .to(type)
                                   .contiguous(at::MemoryFormat::ChannelsLast)
                                   .set_requires_grad(true);
  report("average_pool 64, 112", type, [&](const Numerics& n) { return average_pool(pixels, n); });
}

// 8 images of 197 patches each, or as many texts: 12 heads, width 768.
void report_wide(at::ScalarType type) {
  constexpr int64_t kWide = 768, kWideInner = 3072, kLength = 197, kItems = 8;
  Parameters parameters;
  const ParameterRef weight = parameters.add("weight", {kWideInner, kWide}, xavier_uniform());
  const ParameterRef bias = parameters.add("bias", {kWideInner}, zeros());
  parameters.allocate(torch::kCPU, torch::kBFloat16, 1);
  const Segments segments = make_segments(std::vector<int32_t>(kItems, kLength), torch::kCPU);
  const auto rows = [&](int64_t width) {
    return torch::randn({kItems * kLength, width}).to(type).set_requires_grad(true);
  };
  const torch::Tensor x = rows(kWide), qkv = rows(3 * kWide);
  report("linear 768 -> 3072", type, [&](const Numerics& n) {
    return linear(x, {weight, bias}, n);
  });
  report("linear_gelu 3072", type, [&](const Numerics& n) {
    return linear_gelu(x, {weight, bias}, {}, n);
  });
  AttentionOptions options{.heads = 12};
  report("self_attention 197", type,
         [&](const Numerics& n) { return self_attention(qkv, segments, options, n); });
}

void report_all(Bench& b, at::ScalarType type) {
  torch::Tensor stream = input(kWidth, at::kFloat), x = input(kWidth, type);
  torch::Tensor inner = input(kInner, type), qkv = input(3 * kWidth, type);
  torch::Tensor memory = input(2 * kWidth, type);
  const Linear to_inner{b.inner_weight, b.inner_bias};
  const LayerNorm norm{b.norm_weight, b.norm_bias};
  report("linear 256 -> 1024", type, [&](const Numerics& n) { return linear(x, to_inner, n); });
  report("linear_relu 1024", type,
         [&](const Numerics& n) { return linear_relu(x, to_inner, b.dropout, n); });
  const Linear from_inner{b.outer_weight, b.outer_bias};
  report("linear_residual_norm", type, [&](const Numerics& n) {
    return linear_residual_norm(stream, inner, from_inner, b.dropout, norm, n).normed;
  });
  report("layer_norm", type, [&](const Numerics& n) { return layer_norm(stream, norm, n); });
  report("embed", type, [&](const Numerics& n) {
    return embed({b.tokens, b.position}, *b.table, b.positions, b.dropout, n);
  });
  for (double p : {0.0, 0.1}) {
    const std::string suffix = p > 0 ? " dropout" : "";
    AttentionOptions options{kHeads, true, b.dropout};
    options.dropout.p = p;
    report("self_attention" + suffix, type,
           [&](const Numerics& n) { return self_attention(qkv, b.segments, options, n); });
    options.causal = false;
    report("cross_attention" + suffix, type, [&](const Numerics& n) {
      return cross_attention(x, memory, b.segments, b.segments, options, n);
    });
  }
  report("cross_entropy 6000", type, [&](const Numerics& n) {
    return smoothed_cross_entropy(x, *b.table, b.tokens, 0.1, n).loss;
  });
}

// 10 million weights: our pass, with the bf16 copy, against torch's optimizer without one.
void report_update(const char* name, int64_t bytes_a_weight, const std::function<void()>& own_step,
                   torch::optim::Optimizer& peer) {
  constexpr int64_t kCount = 10'000'000;
  const double own = median_ms(own_step);
  const double plain = median_ms([&] { peer.step(); });
  fmt::print("{:<26} {:<5} {:>9.3f} {:>9.3f} {:>7.2f}x  ({:.1f} GB/s)\n", name, "fp32", plain, own,
             plain / own, static_cast<double>(kCount * bytes_a_weight) / own / 1e6);
}

void report_optimizers() {
  constexpr int64_t kCount = 10'000'000;
  torch::Tensor value = torch::zeros({kCount}), gradient = torch::zeros({kCount});
  torch::Tensor m = torch::zeros({kCount}), v = torch::zeros({kCount});
  torch::Tensor low = torch::zeros({kCount}, torch::kBFloat16);
  torch::Tensor half = torch::zeros({kCount}, torch::kHalf);
  UpdateArrays arrays{.value = value.data_ptr<float>(),
                      .gradient = gradient.data_ptr<float>(),
                      .m = m.data_ptr<float>(),
                      .v = v.data_ptr<float>(),
                      .bf16 = static_cast<Bf16*>(low.data_ptr())};
  torch::Tensor parameter = torch::zeros({kCount}).set_requires_grad(true);
  parameter.mutable_grad() = torch::zeros({kCount});
  torch::optim::Adam adam({parameter}, torch::optim::AdamOptions(1e-3));
  report_update(
      "adam 10M", 34, [&] { adam_step(arrays, {}, 0, kCount); }, adam);
  torch::optim::SGD sgd({parameter}, torch::optim::SGDOptions(1e-3).momentum(0.9));
  MomentumStep momentum;
  momentum.decay = 0.9;
  report_update(
      "sgd 10M", 26, [&] { momentum_step(arrays, momentum, 0, kCount); }, sgd);
  arrays.bf16 = nullptr;
  arrays.fp16 = static_cast<Fp16*>(half.data_ptr());
  report_update(
      "adam 10M, fp16 copy", 34, [&] { adam_step(arrays, {}, 0, kCount); }, adam);
  fmt::print("sum of squares 10M         {:.3f} ms\n",
             median_ms([&] { sum_of_squares(arrays.value, kCount); }));
}

// A gradient of 4096 x 1024 out of PowerSGD's factors of rank 4.
void report_factors() {
  const torch::Tensor p = torch::randn({4096, 4}), q = torch::randn({1024, 4});
  torch::Tensor out = torch::empty({4096, 1024});
  const double own = median_ms([&] { multiply_factors(p, q, out); });
  const double plain = median_ms([&] { at::mm_out(out, p, q.t()); });
  fmt::print("{:<26} {:<5} {:>9.3f} {:>9.3f} {:>7.2f}x\n", "PowerSGD's product", "fp32", plain, own,
             plain / own);
}

// An 8-bit photo of 500 x 375 pixels to 256 x 192, on one thread: our resizing, which gives
// Pillow's bits, against libtorch's.
void report_resizing() {
  constexpr int64_t kHigh = 375, kWide = 500, kNewHigh = 192, kNewWide = 256;
  const torch::Tensor photo = torch::randint(256, {kHigh, kWide, 3}, torch::kUInt8);
  const torch::Tensor padded = torch::constant_pad_nd(photo, {0, 1});  // 4 bytes a pixel
  const DecodedPixels decoded{.pixels = padded.const_data_ptr<uint8_t>(),
                              .stride = kWide * 4,
                              .box = {.x = 0, .y = 0, .width = kWide, .height = kHigh}};
  std::vector<uint8_t> out(kNewHigh * kNewWide * 3);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  for (const ResizeFilter filter : {ResizeFilter::kBilinear, ResizeFilter::kBicubic}) {
    ImageResizer resizer;
    const double own = median_ms([&] {
      resizer.x.plan({0, kWide, kNewWide, 0, kNewWide}, 0, kWide, filter);
      resizer.y.plan({0, kHigh, kNewHigh, 0, kNewHigh}, 0, kHigh, filter);
      resizer.resize(decoded, false, out.data(), kNewWide * 3);
    });
    const torch::Tensor image = photo.permute({2, 0, 1}).unsqueeze(0);  // channels last
    const bool linear = filter == ResizeFilter::kBilinear;
    const double plain = median_ms([&] {
      linear ? at::_upsample_bilinear2d_aa(image, {kNewHigh, kNewWide}, false)
             : at::_upsample_bicubic2d_aa(image, {kNewHigh, kNewWide}, false);
    });
    fmt::print("{:<26} {:<5} {:>9.3f} {:>9.3f} {:>7.2f}x\n",
               linear ? "resize 500x375, bilinear" : "resize 500x375, bicubic", "uint8", plain, own,
               plain / own);
  }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  using namespace lockstep;
  use_caching_allocator();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a line as soon as it is measured
  if (argc > 1) at::set_num_threads(std::atoi(argv[1]));
  std::vector<at::ScalarType> types = {at::kFloat, at::kBFloat16};
  if (argc > 2) types = {std::string(argv[2]) == "fp32" ? at::kFloat : at::kBFloat16};
  fmt::print("isa {}, {} threads, median of {} runs, forward + backward\n", kernels().isa,
             at::get_num_threads(), kRuns);
  fmt::print("{:<26} {:<5} {:>9} {:>9} {:>8}\n", "", "", "plain ms", "fused ms", "gain");
  Bench bench;
  for (at::ScalarType type : types) {
    report_all(bench, type);
    report_wide(type);
    report_images(type);
  }
  report_optimizers();
  report_factors();
  report_resizing();
}
