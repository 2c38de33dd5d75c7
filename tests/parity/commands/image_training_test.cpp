// lockstep train on images against a loop of PyTorch (benchmarks/peers/train_images.py): the same
// weights and images give the same losses, step after step, and the same accuracy, with one rank
// and with two.
#include <gtest/gtest.h>

#include "support/python.h"
#include "support/tiny_images.h"

namespace lockstep {
namespace {

constexpr int kEpochs = 6;

// Every epoch is one step of all 40 images, so that their order plays no part.
const char* const kAlike =
    "[run]\nprecision = \"fp32\"\ndevice = \"cpu\"\n"
    "[task]\nname = \"images\"\n"
    "[images]\nsize = 16\neval_resize = 16\naugmentation = \"none\"\nflip = 0\n"
    "mean = [0.4914, 0.4822, 0.4465]\nstd = [0.247, 0.2435, 0.2616]\n"
    "[loss]\nlabel_smoothing = 0.1\n"
    "[batch]\nimages = 40\n"
    "[training]\nepochs = 6\n"
    "[evaluation]\nevery_epochs = 1\n[checkpoint]\nevery = 0\n";

struct Recipe {
  std::string name, peer;  // options of train_images.py
  std::string ours;        // keys
};

// Weight decay is large so that a wrong one shows within six steps.
const Recipe kResNet = {"resnet18", "--lr 0.0005 --weight-decay 20",
                        "model.name=resnet18 model.stem=cifar model.sync_batch_norm=true "
                        "optimizer.name=sgd optimizer.lr=0.0005 optimizer.nesterov=true "
                        "optimizer.weight_decay=20 schedule.name=one_cycle "
                        "training.clip_norm=0"};
const Recipe kVit = {"vit_ti", "--patch 4 --lr 1e-3 --weight-decay 0.5 --warmup 3",
                     "model.name=vit_ti16 model.patch=4 optimizer.name=adamw optimizer.lr=1e-3 "
                     "optimizer.beta2=0.999 optimizer.epsilon=1e-8 optimizer.weight_decay=0.5 "
                     "schedule.name=cosine schedule.warmup_steps=3 training.clip_norm=1 "
                     "training.decay_vectors=false "
                     "'training.no_decay=[\"cls_token\",\"pos_embed\"]'"};

class ImageTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* module : {"PIL", "safetensors"}) {
      if (!python_has(module)) GTEST_SKIP() << "needs the Python package " << module;
    }
    write_tiny_images(folder() / "data", {.size = {16, 16}});
    write_file(folder() / "alike.toml", kAlike);
  }

  const fs::path& folder() const { return temporary_.path(); }

  void compare(const Recipe& recipe, double tolerance) const {
    const PythonResult made = run_python(
        fmt::format("'{0}/benchmarks/peers/train_images.py' --data {1}/data --model {2} --size 16 "
                    "--batch 40 --epochs {3} --smoothing 0.1 --dtype fp32 --plain --threads 1 "
                    "--workers 0 --init {1}/init.safetensors {4}",
                    LOCKSTEP_SOURCE, folder().string(), recipe.name, kEpochs, recipe.peer));
    ASSERT_EQ(made.status, 0) << made.errors;
    const auto last_line = made.output.rfind('{');
    ASSERT_NE(last_line, std::string::npos) << made.output;
    const auto theirs = nlohmann::json::parse(made.output.substr(last_line));
    const auto losses = theirs.at("loss").get<std::vector<double>>();
    ASSERT_EQ(losses.size(), std::size_t{kEpochs});
    EXPECT_LT(losses.back(), 0.8 * losses.front());  // it learns
    for (int ranks : {1, 2}) {
      SCOPED_TRACE(fmt::format("{}, {} ranks", recipe.name, ranks));
      const fs::path run = folder() / fmt::format("run{}", ranks);
      std::string command = fmt::format(
          "train {0}/alike.toml images.data={0}/data run.folder={1} "
          "run.load_model={0}/init.safetensors {2}",
          folder().string(), run.string(), recipe.ours);
      if (ranks > 1) command = fmt::format("launch -n {} -- {}", ranks, command);
      const ProgramResult trained = run_lockstep(command, "OMP_NUM_THREADS=1");
      ASSERT_EQ(trained.exit_code, 0) << trained.errors;
      const auto steps = metrics_of(run, "step");
      ASSERT_EQ(steps.size(), losses.size());
      for (std::size_t i = 0; i < steps.size(); ++i) {
        // Sums in another order, which training amplifies from step to step.
        const double at = tolerance * static_cast<double>(i + 1);
        EXPECT_NEAR(steps[i].at("train/loss").get<double>(), losses[i], at) << "step " << i + 1;
      }
      const auto evaluations = metrics_of(run, "evaluation");
      ASSERT_EQ(evaluations.size(), losses.size());
      EXPECT_NEAR(evaluations.back().at("eval/acc1").get<double>(),
                  theirs.at("acc1").back().get<double>(), 100.0 / 12 + 0.01);  // an image of 12
    }
  }

 private:
  TemporaryFolder temporary_;
};

TEST_F(ImageTraining, OfAResNetFollowsPyTorch) { compare(kResNet, 1e-3); }

TEST_F(ImageTraining, OfAViTFollowsPyTorch) { compare(kVit, 1e-4); }

}  // namespace
}  // namespace lockstep
