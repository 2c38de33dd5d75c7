#include "nn/conv_norm.h"

#include <torch/nn.h>

#include <array>
#include <barrier>
#include <thread>

#include "base/error.h"
#include "op_testing.h"

namespace lockstep {
namespace {

struct Layer {
  int64_t inputs, outputs, kernel, stride, height, width;
  bool relu, residual;
};

// One layer with random weights and a copy in 16 bits.
struct Built {
  Parameters parameters;
  Convolution convolution;
  BatchNorm norm;

  explicit Built(const Layer& layer, at::ScalarType low = at::kBFloat16) {
    convolution.weight =
        parameters.add("conv", {layer.outputs, layer.inputs, layer.kernel, layer.kernel},
                       normal(1.0 / std::sqrt(layer.inputs * layer.kernel * layer.kernel)));
    convolution.stride = layer.stride;
    convolution.padding = layer.kernel / 2;
    norm.weight = parameters.add("norm.weight", {layer.outputs}, normal(1));
    norm.bias = parameters.add("norm.bias", {layer.outputs}, normal(1));
    norm.running_mean = parameters.add_buffer("norm.running_mean", {layer.outputs}, 0);
    norm.running_variance = parameters.add_buffer("norm.running_var", {layer.outputs}, 1);
    parameters.allocate(torch::kCPU, low, 5);
  }
};

torch::Tensor channels_last(const torch::Tensor& x) {
  return x.contiguous(at::MemoryFormat::ChannelsLast);
}

struct Result {
  torch::Tensor y, d_x, d_residual, buffers;
  std::vector<torch::Tensor> gradients;  // of the convolution, of the norm's weight and bias
};

struct Inputs {
  torch::Tensor x, residual, d_y;  // residual may be undefined
};

Inputs make_inputs(const Layer& layer, int64_t images, at::ScalarType compute) {
  Built shape(layer);
  const int64_t height = shape.convolution.size_after(layer.height);
  const int64_t width = shape.convolution.size_after(layer.width);
  Inputs in;
  in.x = channels_last(random_tensor({images, layer.inputs, layer.height, layer.width}, 1) + 0.5)
             .to(compute);
  const std::vector<int64_t> out{images, layer.outputs, height, width};
  if (layer.residual) in.residual = channels_last(random_tensor(out, 2)).to(compute);
  in.d_y = channels_last(random_tensor(out, 3)).to(compute);
  return in;
}

// Gradients start at 1, so that overwriting them instead of adding shows.
Result run(Built& built, const Inputs& in, bool relu, const BatchNormMode& mode) {
  built.parameters.gradients().fill_(1);
  Inputs leaves = in;
  leaves.x = in.x.detach().clone().set_requires_grad(true);
  if (in.residual.defined()) leaves.residual = in.residual.clone().set_requires_grad(true);
  torch::Tensor y =
      conv_norm(leaves.x, built.convolution, built.norm, {relu, leaves.residual}, mode);
  y.backward(in.d_y);
  Result out{y.detach(), leaves.x.grad(), {}, built.parameters.buffers().clone(), {}};
  if (in.residual.defined()) out.d_residual = leaves.residual.grad();
  for (const ParameterRef& p : built.parameters.list()) {
    out.gradients.push_back(p->value.grad().clone());
  }
  return out;
}

const std::array<Layer, 10> kLayers = {{{64, 64, 1, 1, 9, 7, true, false},
                                        {64, 128, 1, 2, 8, 8, false, false},
                                        {32, 64, 3, 1, 9, 7, true, true},
                                        {64, 32, 3, 2, 9, 12, true, false},
                                        {3, 64, 7, 2, 23, 20, true, false},
                                        {3, 64, 3, 1, 12, 10, true, false},
                                        {5, 7, 3, 1, 6, 5, true, true},
                                        {256, 64, 1, 1, 14, 14, true, true},
                                        {64, 160, 3, 1, 28, 30, true, false},
                                        {64, 128, 3, 1, 9, 7, true, true}}};

TEST(ConvNorm, PlainEqualsTorchsModules) {
  for (const Layer& layer : kLayers) {
    Built built(layer);
    const Inputs in = make_inputs(layer, 3, at::kFloat);
    torch::nn::Conv2d convolution(
        torch::nn::Conv2dOptions(layer.inputs, layer.outputs, layer.kernel)
            .stride(layer.stride)
            .padding(layer.kernel / 2)
            .bias(false));
    torch::nn::BatchNorm2d norm(layer.outputs);
    {
      torch::NoGradGuard no_grad;
      convolution->weight.copy_(built.convolution.weight->value);
      norm->weight.copy_(built.norm.weight->value);
      norm->bias.copy_(built.norm.bias->value);
    }
    torch::Tensor x = in.x.clone().set_requires_grad(true);
    torch::Tensor y = norm->forward(convolution->forward(x));
    if (layer.residual) y = y + in.residual;
    if (layer.relu) y = y.relu();
    y.backward(in.d_y);
    const Result ours = run(built, in, layer.relu, {{at::kFloat, false}, true, {}});
    EXPECT_TENSORS_CLOSE(ours.y, y, 1e-6);
    EXPECT_TENSORS_CLOSE(ours.d_x, x.grad(), 1e-5);
    EXPECT_TENSORS_CLOSE(built.convolution.weight->value.grad() - 1, convolution->weight.grad(),
                         1e-5);
    EXPECT_TENSORS_CLOSE(built.norm.weight->value.grad() - 1, norm->weight.grad(), 1e-5);
    EXPECT_TENSORS_CLOSE(built.norm.running_mean->value, norm->running_mean, 1e-6);
    EXPECT_TENSORS_CLOSE(built.norm.running_variance->value, norm->running_var, 1e-6);
    // And in evaluation, with the statistics that the training left.
    norm->eval();
    torch::NoGradGuard no_grad;
    const torch::Tensor evaluated = conv_norm(in.x, built.convolution, built.norm, {false, {}},
                                              {{at::kFloat, false}, false, {}});
    EXPECT_TENSORS_CLOSE(evaluated, norm->forward(convolution->forward(in.x)), 1e-5);
    EXPECT_TENSORS_CLOSE(built.norm.running_mean->value, norm->running_mean, 1e-6);
  }
}

// Each number in fp32, all together in 16 bits: noise of 1 % (kernels/winograd.h) takes a few of a
// relu's inputs to the other side of zero, each with its whole gradient.
double difference(const torch::Tensor& actual, const torch::Tensor& expected,
                  at::ScalarType compute) {
  return compute == at::kFloat ? relative_difference(actual, expected)
                               : relative_norm(actual, expected);
}

void expect_close(const Result& fused, const Result& plain, at::ScalarType compute) {
  const double tolerance = compute == at::kFloat ? 2e-5 : 0.1;
  EXPECT_LE(difference(fused.y, plain.y, compute), compute == at::kFloat ? 2e-5 : 2e-2);
  EXPECT_LE(difference(fused.d_x, plain.d_x, compute), tolerance);
  if (plain.d_residual.defined()) {
    EXPECT_LE(difference(fused.d_residual, plain.d_residual, compute), tolerance);
  }
  ASSERT_EQ(fused.gradients.size(), plain.gradients.size());
  for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
    SCOPED_TRACE("parameter " + std::to_string(i));
    EXPECT_LE(difference(fused.gradients[i], plain.gradients[i], compute), tolerance);
  }
  EXPECT_TENSORS_CLOSE(fused.buffers, plain.buffers, compute == at::kFloat ? 1e-6 : 1e-3);
}

TEST(ConvNorm, FusedEqualsPlain) {
  for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    for (const Layer& layer : kLayers) {
      SCOPED_TRACE(fmt::format("{} {} -> {} kernel {} stride {}", toString(compute), layer.inputs,
                               layer.outputs, layer.kernel, layer.stride));
      const Inputs in = make_inputs(layer, 3, compute);
      Built plain(layer);
      const Result expected = run(plain, in, layer.relu, {{compute, false}, true, {}});
      for_each_isa([&] {
        Built fused(layer);
        expect_close(run(fused, in, layer.relu, {{compute, true}, true, {}}), expected, compute);
      });
    }
  }
}

// Gathered taps are bounded: of these images two are gathered at once, then the last one.
TEST(ConvNorm, GathersManyPixelsInParts) {
  const Layer layer{64, 32, 3, 2, 220, 220, true, false};
  const Inputs in = make_inputs(layer, 3, at::kBFloat16);
  Built plain(layer), fused(layer);
  const Result expected = run(plain, in, layer.relu, {{at::kBFloat16, false}, true, {}});
  expect_close(run(fused, in, layer.relu, {{at::kBFloat16, true}, true, {}}), expected,
               at::kBFloat16);
}

TEST(ConvNorm, FusedEqualsPlainInFp16) {
  for (const Layer& layer : kLayers) {
    const Inputs in = make_inputs(layer, 2, at::kHalf);
    Built plain(layer, at::kHalf), fused(layer, at::kHalf);
    const Result expected = run(plain, in, layer.relu, {{at::kHalf, false}, true, {}});
    expect_close(run(fused, in, layer.relu, {{at::kHalf, true}, true, {}}), expected, at::kHalf);
  }
}

// The way of a residual block: parts one after the other, and x itself or a shortcut.
struct Block {
  std::vector<Layer> parts, shortcut;
};

struct BlockResult {
  torch::Tensor d_x;
  std::vector<torch::Tensor> gradients;
};

// Goes back through the block twice.
BlockResult run_block(const Block& block, const torch::Tensor& from, const BatchNormMode& mode) {
  std::vector<std::unique_ptr<Built>> parts, shortcut;
  for (const Layer& layer : block.parts) parts.push_back(std::make_unique<Built>(layer));
  for (const Layer& layer : block.shortcut) shortcut.push_back(std::make_unique<Built>(layer));
  const torch::Tensor x = from.clone().set_requires_grad(true);
  const auto gradient = std::make_shared<GradientSum>(2);
  torch::Tensor residual = x, y = x;
  for (const auto& part : shortcut) {
    residual = conv_norm(x, part->convolution, part->norm,
                         {.relu = false, .residual = {}, .x_gradient = gradient}, mode);
  }
  for (const auto& part : parts) {
    ConvNormEnd end;
    if (part == parts.front()) end.x_gradient = gradient;
    if (part == parts.back()) {
      end.residual = residual;
      if (shortcut.empty()) end.residual_gradient = gradient;
    }
    y = conv_norm(y, part->convolution, part->norm, end, mode);
  }
  const torch::Tensor d_y = channels_last(random_tensor(y.sizes().vec(), 3)).to(y.scalar_type());
  y.backward(d_y, true);
  BlockResult out{x.grad().clone(), {}};
  y.backward(d_y);
  EXPECT_TRUE(torch::equal(x.grad(), 2 * out.d_x));
  for (const auto* list : {&parts, &shortcut}) {
    for (const auto& part : *list) out.gradients.push_back(part->parameters.gradients().clone());
  }
  return out;
}

TEST(ConvNorm, BlocksAddTheGradientsOfTheirInput) {
  const Block blocks[] = {
      {{{64, 64, 3, 1, 9, 7, true, false}, {64, 64, 3, 1, 9, 7, true, true}}, {}},
      {{{256, 64, 1, 1, 8, 9, true, false},
        {64, 64, 3, 1, 8, 9, true, false},
        {64, 256, 1, 1, 8, 9, true, true}},
       {}},
      {{{64, 128, 3, 2, 8, 10, true, false}, {128, 128, 3, 1, 4, 5, true, true}},
       {{64, 128, 1, 2, 8, 10, false, false}}},
      {{{64, 64, 1, 1, 8, 9, true, false},
        {64, 64, 3, 1, 8, 9, true, false},
        {64, 256, 1, 1, 8, 9, true, true}},
       {{64, 256, 1, 1, 8, 9, false, false}}}};
  for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    for (const Block& block : blocks) {
      const Layer& first = block.parts.front();
      SCOPED_TRACE(fmt::format("{} {} parts, {} channels, stride {}", toString(compute),
                               block.parts.size(), first.inputs, first.stride));
      const torch::Tensor x =
          channels_last(random_tensor({3, first.inputs, first.height, first.width}, 1)).to(compute);
      const BlockResult plain = run_block(block, x, {{compute, false}, true, {}});
      for_each_isa([&] {
        const BlockResult fused = run_block(block, x, {{compute, true}, true, {}});
        const double tolerance = compute == at::kFloat ? 5e-5 : 0.15;
        EXPECT_LE(difference(fused.d_x, plain.d_x, compute), tolerance);
        for (std::size_t i = 0; i < plain.gradients.size(); ++i) {
          EXPECT_LE(difference(fused.gradients[i], plain.gradients[i], compute), tolerance);
        }
      });
    }
  }
}

TEST(ConvNorm, FusedEqualsPlainInEvaluation) {
  for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    for (const Layer& layer : kLayers) {
      const Inputs in = make_inputs(layer, 2, compute);
      Built built(layer);
      run(built, in, layer.relu, {{compute, false}, true, {}});  // running statistics
      const Result expected = run(built, in, layer.relu, {{compute, false}, false, {}});
      expect_close(run(built, in, layer.relu, {{compute, true}, false, {}}), expected, compute);
    }
  }
}

TEST(ConvNorm, StatisticsDoNotDependOnTheNumberOfThreads) {
  const Layer layer{64, 64, 1, 1, 30, 31, true, true};
  for (at::ScalarType compute : {at::kFloat, at::kBFloat16}) {
    const Inputs in = make_inputs(layer, 8, compute);
    auto with_threads = [&](int threads) {
      Threads scope(threads);
      Built built(layer);
      return run(built, in, true, {{compute, true}, true, {}});
    };
    const Result one = with_threads(1), two = with_threads(2);
    EXPECT_TRUE(torch::equal(one.buffers, two.buffers));
    EXPECT_TRUE(torch::equal(one.y, two.y));
    EXPECT_TRUE(torch::equal(one.d_residual, two.d_residual));
    EXPECT_TRUE(torch::equal(one.gradients[1], two.gradients[1]));
  }
}

// The sum over two threads that stand for ranks.
class TwoRanks {
 public:
  void sum(torch::Tensor& t, int rank) {
    own_[rank] = t;
    all_here_.arrive_and_wait();
    torch::Tensor result = own_[0] + own_[1];
    all_here_.arrive_and_wait();
    t.copy_(result);
  }

 private:
  std::array<torch::Tensor, 2> own_;
  std::barrier<> all_here_{2};
};

Inputs images_of(const Inputs& in, int64_t from, int64_t count) {
  return {in.x.narrow(0, from, count),
          in.residual.defined() ? in.residual.narrow(0, from, count) : torch::Tensor(),
          in.d_y.narrow(0, from, count)};
}

TEST(ConvNorm, SynchronisedStatisticsAreThoseOfTheJoinedBatch) {
  for (bool fused : {false, true}) {
    for (const Layer& layer : kLayers) {
      SCOPED_TRACE(fmt::format("{} {} -> {}", fused, layer.inputs, layer.outputs));
      const Numerics numerics{at::kFloat, fused};
      const Inputs in = make_inputs(layer, 5, at::kFloat);
      Built joined(layer);
      const Result expected = run(joined, in, layer.relu, {numerics, true, {}});
      TwoRanks ranks;
      std::array<std::unique_ptr<Built>, 2> built{std::make_unique<Built>(layer),
                                                  std::make_unique<Built>(layer)};
      std::array<Result, 2> results;
      const std::array<Inputs, 2> parts{images_of(in, 0, 3), images_of(in, 3, 2)};
      auto work = [&](int rank) {
        BatchNormMode mode{numerics, true, [&](torch::Tensor& t) { ranks.sum(t, rank); }};
        results[rank] = run(*built[rank], parts[rank], layer.relu, mode);
      };
      std::thread second(work, 1);
      work(0);
      second.join();
      for (const Result& r : results) EXPECT_TENSORS_CLOSE(r.buffers, expected.buffers, 2e-6);
      EXPECT_TENSORS_CLOSE(torch::cat({results[0].y, results[1].y}), expected.y, 1e-5);
      EXPECT_TENSORS_CLOSE(torch::cat({results[0].d_x, results[1].d_x}), expected.d_x, 2e-5);
      // Each rank's own share: their sum, less the 1 that both started with.
      for (std::size_t i = 0; i < expected.gradients.size(); ++i) {
        EXPECT_TENSORS_CLOSE(results[0].gradients[i] + results[1].gradients[i] - 1,
                             expected.gradients[i], 2e-5);
      }
    }
  }
}

TEST(ConvNorm, OneValueAChannelIsAnError) {
  const Layer layer{8, 16, 1, 1, 1, 1, true, false};
  const Inputs in = make_inputs(layer, 1, at::kFloat);
  for (bool fused : {false, true}) {
    Built built(layer);
    try {
      run(built, in, true, {{at::kFloat, fused}, true, {}});
      FAIL() << "no error";
    } catch (const ConfigError& error) {
      EXPECT_NE(error.describe().find("one value a channel"), std::string::npos);
    }
    run(built, in, true, {{at::kFloat, fused}, false, {}});  // evaluation does not mind
    EXPECT_TRUE(torch::equal(built.norm.running_mean->value, torch::zeros({16})));
  }
}

}  // namespace
}  // namespace lockstep
