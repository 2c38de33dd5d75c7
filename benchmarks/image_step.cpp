// The training step of a network for images on made-up images: forward, loss, backward, exchange
// between ranks, optimizer - the trainer's own train_step. Prints one JSON line, like its PyTorch
// peer, benchmarks/peers/images.py; benchmarks/peers/ratio compares the two.
//
//   image_step [--model resnet50] [--stem imagenet|cifar] [--size PIXELS] [--batch N]
//
// and the options of step_run.h. Each rank has a batch of its own.
#include "base/random.h"
#include "models/image_model.h"
#include "step_run.h"

namespace lockstep {
namespace {

struct Options {
  StepRun run;
  ImageModelConfig model;
  int64_t size = 224, batch = 16;
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
  const char* unit() const override { return "img"; }

 private:
  const Options& options_;
  std::unique_ptr<ImageModel> model_;
};

// As the peer: SGD with momentum and decay, AdamW for ViT; a constant rate, no clipping.
void run(const Options& options) {
  const bool is_vit = options.model.name.rfind("vit", 0) == 0;
  const std::string optimizer =
      is_vit ? "name = \"adamw\"\nlr = 1e-4\n"
             : "name = \"sgd\"\nlr = 0.01\nmomentum = 0.9\nweight_decay = 1e-4\n";
  StepRun run = options.run;
  run.workload = fmt::format("{}-{}", options.model.name, options.size);
  RunConfig config = step_config(run, "[optimizer]\n" + optimizer +
                                          "[schedule]\nname = \"constant\"\n[training]\n"
                                          "clip_norm = 0\n");
  time_steps(run, std::move(config), [&](const Numerics& numerics) {
    return std::make_unique<StepTask>(options, numerics);
  });
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::Options options;
  CLI::App app("Times the training step of a network for images", "image_step");
  app.add_option("--model", options.model.name);
  app.add_option("--stem", options.model.stem)->check(CLI::IsMember({"imagenet", "cifar"}));
  app.add_option("--size", options.size);
  app.add_option("--batch", options.batch);
  lockstep::add_step_options(app, options.run);
  return lockstep::step_main(app, argc, argv, [&] { lockstep::run(options); });
}
