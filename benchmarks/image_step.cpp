// The training step of a network for images on made-up images: forward, loss, backward, exchange
// between ranks, optimizer - the trainer's own train_step. Prints one JSON line, like the PyTorch
// peers.
//
//   image_step [--model resnet50] [--stem imagenet|cifar] [--size PIXELS] [--batch N] [--precision
//   bf16|fp32]
//       [--threads N] [--steps N] [--warmup N] [--profile] [key=value ...]
//
// key=value: settings of a run (comm.hook=bf16, run.fused=false). Ranks come from the environment,
// as for lockstep train; each has a batch of its own.
#include <ATen/Parallel.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/random.h"
#include "kernels/cpu_allocator.h"
#include "models/image_model.h"
#include "step_timing.h"
#include "train/train_step.h"

namespace lockstep {
namespace {

struct Options {
  std::string precision = "bf16", tag;
  ImageModelConfig model;
  int64_t size = 224, batch = 16;
  int threads = 1, steps = 8, warmup = 4;
  bool profile = false;
  std::vector<std::string> settings;
};

constexpr int64_t kClasses = 1000;

struct ImageBatch : Batch {
  torch::Tensor images, labels;
};

// The task of the trainer with made-up images: the network is the real one.
class StepTask : public StepOnlyTask {
 public:
  StepTask(const Options& options, const Numerics& numerics)
      : StepOnlyTask(numerics), options_(options) {
    model_ = make_image_model(options.model, kClasses, options.size, parameters_);
    parameters_.allocate(torch::kCPU, numerics.compute, 1);
  }
  StepBatch batch(int64_t step, World& world) const {
    auto made = std::make_unique<ImageBatch>();
    const at::Generator generator =
        at::detail::createCPUGenerator(combine_keys(static_cast<uint64_t>(step), world.rank()));
    const int64_t n = options_.batch;
    made->images = torch::randn({n, 3, options_.size, options_.size}, generator, torch::kFloat)
                       .contiguous(at::MemoryFormat::ChannelsLast)
                       .to(numerics_.compute);
    made->labels = torch::randint(0, kClasses, {n}, generator, torch::kInt64);
    made->items = made->targets = n;
    StepBatch out;
    out.targets = n * world.size();
    out.micro_batches.push_back(std::move(made));
    return out;
  }
  LossParts loss(const Batch& batch, int64_t step) override {
    const auto& b = static_cast<const ImageBatch&>(batch);
    ImageForward how;
    how.numerics = numerics_;
    how.training = true;
    how.step = step;
    const torch::Tensor logits = model_->logits(b.images, how).to(at::kFloat);
    torch::Tensor loss = at::cross_entropy_loss(logits, b.labels, {}, at::Reduction::Sum);
    return {loss, loss.detach(), logits.argmax(1).eq(b.labels).sum()};
  }
  int64_t width() const override { return 1; }
  const char* unit() const override { return "img"; }

 private:
  const Options& options_;
  std::unique_ptr<ImageModel> model_;
};

// As the peers: SGD with momentum and decay, AdamW for ViT; a constant rate, no clipping.
RunConfig step_config(const Options& options) {
  const bool is_vit = options.model.name.rfind("vit", 0) == 0;
  const std::string optimizer =
      is_vit ? "name = \"adamw\"\nlr = 1e-4\n"
             : "name = \"sgd\"\nlr = 0.01\nmomentum = 0.9\nweight_decay = 1e-4\n";
  ConfigSource source = ConfigSource::from_text(
      "[optimizer]\n" + optimizer + "[schedule]\nname = \"constant\"\n[training]\nclip_norm = 0\n",
      "image_step");
  for (const std::string& word : options.settings) source.override_with(word);
  source.set("run.precision", options.precision, "--precision");
  return read_run_config(std::move(source));
}

void run(const Options& options) {
  use_caching_allocator();
  at::set_num_threads(options.threads);
  RunConfig config = step_config(options);
  WorldOptions world_options;
  world_options.shared_memory = config.comm.shared_memory;
  World world(detect_launch_environment(), world_options);
  StepTask task(options, choose_numerics(config.run));
  Parameters& parameters = task.parameters();
  WeightUpdate update(world, parameters, *config.optimizer,
                      {.sharded = config.training.shard_optimizer});
  auto hook = make_comm_hook(world, config.comm.hooks);
  std::vector<ReducedParameter> reduced;
  for (const ParameterRef& p : parameters.list()) {
    reduced.push_back({p->value, p->offset, p->numel});
  }
  GradientReducer reducer(world, *hook, std::move(reduced), parameters.gradients(), {});
  FrozenWeights frozen;
  RunningStatistics statistics(world, parameters, /*average=*/false);
  StepGuard guard(choose_numerics(config.run), config.loss_scale, config.training.divergence);
  LocalSteps local({world, parameters, frozen, {}}, {}, {}, int64_t{4} << 20);  // of every step
  int64_t steps_in_all = options.warmup + options.steps;
  Engine engine{task,  world, reducer,    update, frozen,
                guard, local, statistics, config, steps_in_all};

  std::vector<double> times, waits;
  int64_t misses = 0;
  double first_step = 0, total = 0;
  for (int i = 0; i < options.warmup + options.steps; ++i) {
    StepBatch batch = task.batch(i, world);
    world.barrier();
    auto start = std::chrono::steady_clock::now();
    StepRecord record = train_step(engine, batch, i + 1, {}).record;
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (options.profile && i + 1 == options.warmup) Profile::start();
    if (i == 0) first_step = wall_clock() - process_start();
    if (i + 1 == options.warmup) misses = allocator_statistics().misses;
    if (i < options.warmup) continue;
    times.push_back(took.count());
    waits.push_back(record.wait_seconds);
    total += took.count();
  }
  if (options.profile && world.is_leader()) Profile::print(options.steps);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  if (!world.is_leader()) return;
  const double images = static_cast<double>(options.batch * world.size() * options.steps);
  nlohmann::ordered_json out{{"workload", fmt::format("{}-{}", options.model.name, options.size)},
                             {"peer", "lockstep"},
                             {"precision", options.precision},
                             {"world", world.size()},
                             {"threads", options.threads},
                             {"steps", options.steps},
                             {"median_step_s", quantile(times, 0.5)},
                             {"min_step_s", quantile(times, 0)},
                             {"p90", quantile(times, 0.9)},
                             {"samples_per_s", images / total},
                             {"median_wait_s", quantile(waits, 0.5)},
                             {"new_blocks", allocator_statistics().misses - misses},
                             {"peak_rss_mb", usage.ru_maxrss / 1024},
                             {"process_to_first_step_s", first_step},
                             {"tag", options.tag}};
  fmt::print("{}\n", out.dump());
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::Options options;
  CLI::App app("Times the training step of a network for images");
  app.add_option("--model", options.model.name);
  app.add_option("--stem", options.model.stem)->check(CLI::IsMember({"imagenet", "cifar"}));
  app.add_option("--size", options.size);
  app.add_option("--batch", options.batch);
  app.add_option("--precision", options.precision)->check(CLI::IsMember({"bf16", "fp32"}));
  app.add_option("--threads", options.threads);
  app.add_option("--steps", options.steps);
  app.add_option("--warmup", options.warmup);
  app.add_flag("--profile", options.profile, "print the time of each operation");
  app.add_option("--tag", options.tag);
  app.add_option("settings", options.settings);
  CLI11_PARSE(app, argc, argv);
  try {
    lockstep::run(options);
  } catch (const lockstep::Error& error) {
    fmt::print(stderr, "image_step: {}\n", error.describe());
    return error.exit_code();
  }
  return 0;
}
