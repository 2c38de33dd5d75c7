// The optimizers besides Adam against libtorch's, or against their formula written out plainly.
#include <gtest/gtest.h>
#include <torch/optim.h>

#include <cmath>

#include "optim/optimizers/adam.h"
#include "optim/optimizers/catalogue.h"
#include "optim/optimizers/larc.h"
#include "optim/optimizers/novograd.h"
#include "optim/optimizers/sgd.h"

namespace lockstep {
namespace {

constexpr int64_t kSizes[] = {96, 16, 240};  // of three layers, one after the other
constexpr int64_t kTotal = 352;

torch::Tensor numbers(int64_t seed) {
  at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(seed));
  return torch::randn({kTotal}, generator, torch::kFloat);
}

// Flat arrays of which [begin, end) is this rank's; the layers know the whole.
struct Shard {
  torch::Tensor values, gradients, average, low;
  FlatArrays arrays;
  Shard(int64_t begin, int64_t end) : values(numbers(1)), gradients(torch::zeros({kTotal})) {
    average = values.clone();
    low = values.to(torch::kBFloat16);
    auto own = [&](const torch::Tensor& t) { return t.narrow(0, begin, end - begin); };
    arrays = {own(values), own(gradients), own(low), own(average)};
    int64_t offset = 0;
    for (int64_t size : kSizes) {
      const int64_t first = std::clamp(offset, begin, end);
      const int64_t last = std::clamp(offset + size, begin, end);
      arrays.layers.push_back({.begin = first - begin,
                               .end = last - begin,
                               .first = first - offset,
                               .value = values.narrow(0, offset, size),
                               .gradient = gradients.narrow(0, offset, size)});
      offset += size;
    }
  }
};

// Five steps of ours; returns the weights.
torch::Tensor run_ours(const OptimizerConfig& config, StepSize size = {.lr = 1e-2}) {
  Shard all(0, kTotal);
  auto optimizer = config.make(all.arrays);
  for (int64_t step = 0; step < 5; ++step) {
    all.gradients.copy_(numbers(step + 2) * 8);
    size.gradient_scale = 0.125;
    size.average_decay = 0.9;
    optimizer->step(size);
    EXPECT_EQ(all.gradients.abs().max().item<float>(), 0);
    EXPECT_TRUE(torch::equal(all.low, all.values.to(torch::kBFloat16)));
  }
  return all.values;
}

torch::Tensor run_torchs_sgd(const torch::optim::SGDOptions& options) {
  torch::Tensor values = numbers(1).set_requires_grad(true);
  torch::optim::SGD sgd({values}, options);
  for (int64_t step = 0; step < 5; ++step) {
    values.mutable_grad() = numbers(step + 2);
    sgd.step();
  }
  return values.detach();
}

// fp32 rounding of five steps of size 1e-2 on numbers of size 1.
void expect_close(const torch::Tensor& ours, const torch::Tensor& theirs) {
  EXPECT_TRUE(torch::allclose(ours, theirs, 1e-5, 1e-6)) << (ours - theirs).abs().max();
}

// Weights of the second layer are without decay: a group of its own in torch.
TEST(Sgd, LeavesLayersWithoutDecayAlone) {
  SgdConfig config;
  config.momentum = 0.9;
  config.nesterov = true;
  config.weight_decay = 0.1;
  Shard all(0, kTotal);
  all.arrays.layers[1].decays = false;
  auto optimizer = config.make(all.arrays);
  std::vector<torch::Tensor> theirs;
  for (const LayerSlice& layer : all.arrays.layers) {
    theirs.push_back(layer.value.clone().set_requires_grad(true));
  }
  auto options = torch::optim::SGDOptions(1e-2).momentum(0.9).nesterov(true).weight_decay(0.1);
  torch::optim::SGD sgd({theirs[0], theirs[2]}, options);
  torch::optim::SGD without({theirs[1]}, options.weight_decay(0));
  for (int64_t step = 0; step < 5; ++step) {
    all.gradients.copy_(numbers(step + 2));
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      theirs[i].mutable_grad() = all.arrays.layers[i].gradient.clone();
    }
    sgd.step();
    without.step();
    optimizer->step({.lr = 1e-2});
  }
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    EXPECT_TRUE(torch::allclose(all.arrays.layers[i].value, theirs[i].detach(), 1e-5, 1e-6)) << i;
  }
}

TEST(Sgd, StepsAsTorchsSgd) {
  SgdConfig config;
  config.momentum = 0;
  expect_close(run_ours(config), run_torchs_sgd(torch::optim::SGDOptions(1e-2)));
  config.momentum = 0.9;
  config.weight_decay = 0.1;
  auto options = torch::optim::SGDOptions(1e-2).momentum(0.9).weight_decay(0.1);
  expect_close(run_ours(config), run_torchs_sgd(options));
  config.nesterov = true;
  expect_close(run_ours(config), run_torchs_sgd(options.nesterov(true)));
  config.nesterov = false;
  config.dampening = 0.3;
  expect_close(run_ours(config), run_torchs_sgd(options.nesterov(false).dampening(0.3)));
}

TEST(Sgd, TakesTheMomentumOfTheSchedule) {
  SgdConfig config, other;
  config.momentum = 0.5;
  other.momentum = 0.8;
  EXPECT_TRUE(torch::equal(run_ours(config, {.lr = 1e-2, .momentum = 0.8}), run_ours(other)));
}

// lr * sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + epsilon), with an epsilon that is seen.
TEST(Adam, AddsEpsilonToTheUncorrectedRootAsTensorFlow) {
  AdamConfig config(AdamKind::kAdam);
  config.beta2 = 0.99;
  config.epsilon = 0.05;
  config.corrected_epsilon = false;
  torch::Tensor w = numbers(1).to(torch::kDouble), m = torch::zeros_like(w), v = m.clone();
  for (int64_t step = 1; step <= 5; ++step) {
    torch::Tensor g = numbers(step + 1).to(torch::kDouble);
    m = 0.9 * m + 0.1 * g;
    v = 0.99 * v + 0.01 * g * g;
    const double t = static_cast<double>(step);
    const double rate = 1e-2 * std::sqrt(1 - std::pow(0.99, t)) / (1 - std::pow(0.9, t));
    w = w - rate * m / (v.sqrt() + 0.05);
  }
  expect_close(run_ours(config), w.to(torch::kFloat));
}

torch::Tensor novograd_by_formula(const NovoGradConfig& c) {
  torch::Tensor w = numbers(1).to(torch::kDouble), m = torch::zeros_like(w);
  std::vector<double> v(3, 0);
  for (int64_t step = 0; step < 5; ++step) {
    torch::Tensor all = numbers(step + 2).to(torch::kDouble);
    int64_t offset = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      auto layer = [&](const torch::Tensor& t) { return t.narrow(0, offset, kSizes[i]); };
      torch::Tensor g = layer(all);
      const double square = g.square().sum().item<double>();
      v[i] = step == 0 ? square : c.beta2 * v[i] + (1 - c.beta2) * square;
      g = g / std::sqrt(v[i] + c.epsilon) + c.weight_decay * layer(w);
      if (c.gradient_averaging) g = g * (1 - c.beta1);
      layer(m).mul_(c.beta1).add_(g);
      layer(w).sub_(1e-2 * layer(m));
      offset += kSizes[i];
    }
  }
  return w.to(torch::kFloat);
}

TEST(NovoGrad, StepsAsItsFormula) {
  NovoGradConfig config;
  expect_close(run_ours(config), novograd_by_formula(config));
  config.weight_decay = 0.1;
  config.gradient_averaging = true;
  expect_close(run_ours(config), novograd_by_formula(config));
}

TEST(Larc, ScalesGradientsByLayer) {
  Shard all(0, kTotal);
  all.gradients.copy_(numbers(7) * 4);
  all.values.narrow(0, kSizes[0], kSizes[1]).zero_();
  LarcConfig config;
  config.eta = 0.02;
  for (const char* mode : {"clip", "scale"}) {
    config.mode = mode;
    const std::vector<double> scales = larc_scales(all.arrays.layers, config, 1e-2, 0.25);
    ASSERT_EQ(scales.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      const LayerSlice& layer = all.arrays.layers[i];
      const double w = layer.value.to(torch::kDouble).norm().item<double>();
      const double g = layer.gradient.to(torch::kDouble).norm().item<double>() / 4;
      double expected = 0.02 * w / (g + 1e-7) / (config.mode == "clip" ? 1e-2 : 1);
      expected = std::max(expected, 1e-7);
      if (config.mode == "clip") expected = std::min(expected, 1.0);
      EXPECT_NEAR(scales[i], expected, 1e-9) << mode << " layer " << i;
    }
  }
}

// What ZeRO-1 rests on: two ranks that update a share each, cut through a layer, get the bits of
// one that updates all.
TEST(Optimizers, ShardsGiveTheBitsOfTheWhole) {
  for (const char* name : {"adam", "adamw", "lazy_adam", "novograd", "sgd"}) {
    SCOPED_TRACE(name);
    auto config = optimizers().get(name)();
    auto run = [&](const std::vector<int64_t>& cuts) {
      std::vector<std::unique_ptr<Shard>> shards;
      std::vector<std::unique_ptr<Optimizer>> ranks;
      for (std::size_t r = 0; r + 1 < cuts.size(); ++r) {
        shards.push_back(std::make_unique<Shard>(cuts[r], cuts[r + 1]));
        ranks.push_back(config->make(shards.back()->arrays));
      }
      for (int64_t step = 0; step < 4; ++step) {
        StepSize size{.lr = 1e-2, .average_decay = 0.9};
        for (auto& shard : shards) shard->gradients.copy_(numbers(step + 2));
        LarcConfig larc;
        larc.mode = step % 2 == 0 ? "clip" : "scale";
        for (std::size_t r = 0; r < ranks.size(); ++r) {
          size.layer_scales = larc_scales(shards[r]->arrays.layers, larc, size.lr, 1);
          ranks[r]->step(size);
        }
        for (std::size_t r = 0; r < ranks.size(); ++r) {  // fetch the other's weights
          for (std::size_t from = 0; from < ranks.size(); ++from) {
            const int64_t n = cuts[from + 1] - cuts[from];
            shards[r]
                ->values.narrow(0, cuts[from], n)
                .copy_(shards[from]->values.narrow(0, cuts[from], n));
          }
        }
      }
      std::vector<torch::Tensor> averages;
      for (auto& shard : shards) averages.push_back(shard->arrays.average);
      return std::pair(shards[0]->values, torch::cat(averages));
    };
    auto [whole, whole_average] = run({0, kTotal});
    auto [cut, cut_average] = run({0, 176, kTotal});
    EXPECT_TRUE(torch::equal(whole, cut));
    EXPECT_TRUE(torch::equal(whole_average, cut_average));
  }
}

}  // namespace
}  // namespace lockstep
