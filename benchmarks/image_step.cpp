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
#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/random.h"
#include "models/image_model.h"
#include "step_run.h"

namespace lockstep {
namespace {

struct Options {
  StepRun run;
  ImageModelConfig model;
  int64_t size = 224, batch = 16;
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
  source.set("run.precision", options.run.precision, "--precision");
  return read_run_config(std::move(source));
}

void run(const Options& options) {
  RunConfig config = step_config(options);
  StepRun run = options.run;
  run.workload = fmt::format("{}-{}", options.model.name, options.size);
  time_steps(run, config, [&](const Numerics& numerics) {
    return std::make_unique<StepTask>(options, numerics);
  });
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
  app.add_option("--precision", options.run.precision)->check(CLI::IsMember({"bf16", "fp32"}));
  app.add_option("--threads", options.run.threads);
  app.add_option("--steps", options.run.steps);
  app.add_option("--warmup", options.run.warmup);
  app.add_flag("--profile", options.run.profile, "print the time of each operation");
  app.add_option("--tag", options.run.tag);
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
