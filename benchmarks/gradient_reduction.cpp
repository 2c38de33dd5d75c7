// Our gradient reduction against c10d::Reducer (the engine of PyTorch's DistributedDataParallel):
// a step of a stack of square layers - clear the gradients, forward, backward, reduce - on the same
// weights and inputs, the variants in turn in the same processes.
//
//   gradient_reduction WIDTH LAYERS ROWS STEPS     started once a rank with torchrun's variables:
//   RANK=0 (1, ...) WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1
//   MASTER_PORT=29611 (the next port is used too) OMP_NUM_THREADS=1
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <vector>

#include "base/error.h"
#include "dist/collectives/gloo_backend.h"
#include "dist/collectives/store.h"
#include "dist/gradients/gradient_reducer.h"
#include "dist/rank/launch_environment.h"

namespace lockstep {
namespace {

using Tensors = std::vector<torch::Tensor>;

struct Shape {
  int64_t width, layers, rows;
  int steps;
};

// Leaves of their own on shared weights, so that each variant has its own gradients and hooks.
Tensors leaves_of(const Tensors& weights) {
  Tensors out;
  for (const torch::Tensor& w : weights) out.push_back(w.detach().requires_grad_());
  return out;
}

void backward(const Tensors& weights, const torch::Tensor& input) {
  torch::Tensor x = input;  // [rows, width]
  for (const torch::Tensor& w : weights) x = torch::relu(torch::matmul(x, w));
  x.square().mean().backward();
}

class Variant {
 public:
  virtual ~Variant() = default;
  virtual void step(const torch::Tensor& input) = 0;
  virtual torch::Tensor gradient_of_first() const = 0;  // summed over ranks
};

class Own final : public Variant {
 public:
  Own(World& world, const Tensors& weights, const std::string& hook, bool reduces)
      : weights_(leaves_of(weights)), reduces_(reduces) {
    int64_t total = 0;
    for (const torch::Tensor& w : weights_) total += w.numel();
    flat_ = torch::zeros({total});
    std::vector<ReducedParameter> parameters;
    int64_t offset = 0;
    for (torch::Tensor& w : weights_) {
      w.mutable_grad() = flat_.narrow(0, offset, w.numel()).view(w.sizes());
      parameters.push_back({w, offset, w.numel()});
      offset += w.numel();
    }
    hook_ = make_comm_hook(world, {hook});
    reducer_ =
        std::make_unique<GradientReducer>(world, *hook_, parameters, flat_, ReducerOptions{});
  }
  void step(const torch::Tensor& input) override {
    flat_.zero_();
    reducer_->prepare(reduces_);
    backward(weights_, input);
    reducer_->finish();
  }
  torch::Tensor gradient_of_first() const override { return weights_[0].grad(); }

 private:
  Tensors weights_;
  bool reduces_;
  torch::Tensor flat_;
  std::unique_ptr<CommHook> hook_;
  std::unique_ptr<GradientReducer> reducer_;
};

class C10d final : public Variant {
 public:
  C10d(c10::intrusive_ptr<c10d::ProcessGroup> group, const Tensors& weights, bool as_view)
      : weights_(leaves_of(weights)), size_(group->getSize()) {
    auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
        weights_, {c10d::kDefaultFirstBucketBytes, c10d::kDefaultBucketBytesCap});
    std::reverse(buckets.begin(), buckets.end());
    std::vector<bool> sparse(weights_.size(), false);
    std::unordered_map<size_t, std::string> names;
    for (std::size_t i = 0; i < weights_.size(); ++i) names[i] = std::to_string(i);
    reducer_ = std::make_unique<c10d::Reducer>(
        weights_, buckets, std::move(group), sparse, c10d::kDefaultBucketBytesCap,
        /*find_unused_parameters=*/false, as_view, names, c10d::kDefaultFirstBucketBytes,
        /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
        std::vector<int64_t>{});
  }
  void step(const torch::Tensor& input) override {
    // Dropped, not zeroed, as PyTorch does: the first gradient is then not added to anything.
    for (torch::Tensor& w : weights_) w.mutable_grad().reset();
    reducer_->rebuild_buckets();
    reducer_->prepare_for_backward({});
    backward(weights_, input);
  }
  torch::Tensor gradient_of_first() const override { return weights_[0].grad() * size_; }

 private:
  Tensors weights_;
  int size_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

struct Timed {
  std::string name;
  std::unique_ptr<Variant> variant;
  std::vector<double> milliseconds = {};
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void check_gradients(const std::vector<Timed>& all) {
  torch::Tensor exact = all[1].variant->gradient_of_first();
  for (std::size_t i = 2; i < all.size(); ++i) {
    torch::Tensor error = (all[i].variant->gradient_of_first() - exact).abs().max();
    double relative = error.item<double>() / exact.abs().max().item<double>();
    double bound = all[i].name.find("bf16") == std::string::npos ? 1e-5 : 2e-2;
    if (relative > bound) throw std::runtime_error(all[i].name + ": other gradients than ours");
  }
}

void report(const World& world, const Shape& shape, const std::vector<Timed>& all) {
  if (!world.is_leader()) return;
  int64_t parameters = shape.width * shape.width * shape.layers;
  fmt::print("{} M parameters, {} ranks, {} steps; median ms a step (ratio to ours)\n",
             parameters / 1000000, world.size(), shape.steps);
  for (const Timed& t : all) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < t.milliseconds.size(); ++i) {
      ratios.push_back(t.milliseconds[i] / all[1].milliseconds[i]);
    }
    fmt::print("{:<36} {:8.1f} ({:.2f})\n", t.name, median(t.milliseconds), median(ratios));
  }
}

void run(const Shape& shape) {
  torch::set_num_threads(1);
  LaunchEnvironment environment = detect_launch_environment();
  World world(environment, {});
  environment.master_port += 1;
  auto store = open_store(environment, std::chrono::seconds{60});
  auto group = c10::make_intrusive<c10d::ProcessGroup>(store, world.rank(), world.size());
  auto gloo = make_gloo_backend(store, world.rank(), world.size(), {environment.master_address, {}},
                                std::chrono::seconds{60});
  group->setBackend(torch::kCPU, c10d::ProcessGroup::BackendType::GLOO, gloo);

  torch::manual_seed(1);
  Tensors weights;
  for (int64_t i = 0; i < shape.layers; ++i) {
    weights.push_back(torch::randn({shape.width, shape.width}) / std::sqrt(shape.width / 2.0));
  }
  torch::manual_seed(2 + world.rank());
  torch::Tensor input = torch::randn({shape.rows, shape.width});

  std::vector<Timed> all;
  all.push_back({"no reduction", std::make_unique<Own>(world, weights, "none", false)});
  all.push_back({"ours", std::make_unique<Own>(world, weights, "none", true)});
  all.push_back({"ours, bf16 on the wire", std::make_unique<Own>(world, weights, "bf16", true)});
  all.push_back({"c10d::Reducer", std::make_unique<C10d>(group, weights, false)});
  all.push_back(
      {"c10d::Reducer, gradients as views", std::make_unique<C10d>(group, weights, true)});
  constexpr int kWarmUp = 2;
  for (int step = 0; step < kWarmUp + shape.steps; ++step) {
    for (Timed& t : all) {
      world.barrier();
      auto start = std::chrono::steady_clock::now();
      t.variant->step(input);
      std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      if (step >= kWarmUp) t.milliseconds.push_back(took.count());
    }
  }
  check_gradients(all);
  report(world, shape, all);
  all.clear();
  world.barrier();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "usage: gradient_reduction WIDTH LAYERS ROWS STEPS\n");
    return lockstep::kExitConfig;
  }
  try {
    lockstep::run({std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]),
                   std::max(1, std::atoi(argv[4]))});
    return lockstep::kExitOk;
  } catch (const lockstep::Error& error) {
    fmt::print(stderr, "{}\n", error.describe());
    return error.exit_code();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return lockstep::kExitInternal;
  }
}
