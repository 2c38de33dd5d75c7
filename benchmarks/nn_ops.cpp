// Time of each operation of nn/, forward and backward, fused against plain, in the shapes of the
// small translation Transformer: width 256, 8 heads, feed-forward 1024, 2048 tokens in sentences of
// 8 to 24, vocabulary 6000, dropout 0.1. One warm-up, then the median of many runs.
//
//   nn_ops [threads]
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cpu_allocator.h"
#include "kernels/kernel_table.h"
#include "kernels/update.h"
#include "nn/attention.h"
#include "nn/cross_entropy.h"
#include "nn/dropout.h"
#include "nn/embedding.h"
#include "nn/layer_norm.h"
#include "nn/linear_epilogues.h"

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

void report(const std::string& name, at::ScalarType compute, const Op& op) {
  double ms[2];
  for (bool fused : {false, true}) {
    const Numerics numerics{compute, fused};
    torch::Tensor gradient;
    ms[fused] = median_ms([&] {
      torch::Tensor out = op(numerics);
      if (!gradient.defined()) gradient = torch::ones_like(out);
      out.backward(gradient);
    });
  }
  fmt::print("{:<22} {:<5} {:>9.3f} {:>9.3f} {:>7.1f}x\n", name,
             compute == at::kFloat ? "fp32" : "bf16", ms[0], ms[1], ms[0] / ms[1]);
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
  fmt::print("{:<22} {:<5} {:>9.3f} {:>9.3f} {:>7.1f}x  ({:.1f} GB/s)\n", name, "fp32", plain, own,
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
  fmt::print("sum of squares 10M     {:.3f} ms\n",
             median_ms([&] { sum_of_squares(arrays.value, kCount); }));
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  using namespace lockstep;
  use_caching_allocator();
  if (argc > 1) at::set_num_threads(std::atoi(argv[1]));
  fmt::print("isa {}, {} threads, median of {} runs, forward + backward\n", kernels().isa,
             at::get_num_threads(), kRuns);
  fmt::print("{:<22} {:<5} {:>9} {:>9} {:>8}\n", "", "", "plain ms", "fused ms", "gain");
  Bench bench;
  for (at::ScalarType type : {at::kFloat, at::kBFloat16}) report_all(bench, type);
  report_optimizers();
}
