// Every task on a device that is not the CPU (tests/support/test_device.h): it trains, evaluates,
// saves, resumes and is used there as here. A tensor in the wrong place ends the program; what the
// host waits for is counted.
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "support/tiny_corpus.h"
#include "support/tiny_images.h"
#include "support/tiny_texts.h"

namespace lockstep {
namespace {

// A step is waited for twice: for its figures and for the norm of its gradients.
constexpr int64_t kWaits = 2;

struct Traffic {
  int64_t in = 0, out = 0, waits = 0;
};

// A run here and one there: by the plain operations, or by the kernels of CPUs and those of GPUs.
class Placement : public ::testing::TestWithParam<bool> {
 protected:
  std::string words_of(const char* device) const {
    return fmt::format("run.device={} run.fused={} ", device, GetParam());
  }
  std::string words_here() const { return words_of("cpu"); }
  std::string words_there() const { return words_of("cuda"); }

  fs::path run(const std::string& name) const { return folder_.path() / name; }

  ProgramResult here(const std::string& words) const {
    return run_lockstep(words, "OMP_NUM_THREADS=1");
  }
  ProgramResult there(const std::string& words) const {
    return on_gpu() ? here(words)
                    : run_program(LOCKSTEP_ON_TEST_DEVICE, words, "OMP_NUM_THREADS=1 " + devices_);
  }

  // With LOCKSTEP_ON_GPU (the tests labelled gpu) a real one takes the place of the test device.
  static bool on_gpu() { return std::getenv("LOCKSTEP_ON_GPU") != nullptr; }
  void SetUp() override {
    static const bool lacks_gpu =
        on_gpu() && !std::regex_search(run_lockstep("doctor --json").output,
                                       std::regex(R"("compute": \{\s*"gpus": [1-9])"));
    if (lacks_gpu) GTEST_SKIP() << "no GPU that this program can compute on";
  }

  std::string train(const std::string& name, const std::string& words) const {
    return fmt::format("{}train {}/tiny.toml run.folder={} {}", launched_, folder_.path().string(),
                       run(name).string(), words);
  }

  // Trains 20 steps in both places with an evaluation after 10 of them, and goes on to step 24.
  // Figures of the first three steps may differ by `first` of themselves, others by `later`.
  void expect_equal_runs(const std::string& words, double later = 1e-3, double first = 1e-5) {
    const std::string both =
        "training.steps=20 evaluation.every=10 training.average_decay=0.9 " + words;
    const ProgramResult a = here(train("here", words_here() + both));
    const ProgramResult b = there(train("there", words_there() + both));
    ASSERT_EQ(a.exit_code, 0) << a.errors;
    ASSERT_EQ(b.exit_code, 0) << b.errors;
    if (!on_gpu()) {
      EXPECT_NE(b.errors.find("testdevice:0"), std::string::npos) << b.errors;
      EXPECT_GE(count_of("kernels", b), 20) << b.errors;  // the optimizer's
    }
    const ProgramResult c =
        here(train("here", words_here() + both + " training.steps=24 --resume"));
    const ProgramResult d =
        there(train("there", words_there() + both + " training.steps=24 --resume"));
    ASSERT_EQ(c.exit_code, 0) << c.errors;
    ASSERT_EQ(d.exit_code, 0) << d.errors;
    const auto steps = metrics_of(run("here"), "step"), others = metrics_of(run("there"), "step");
    ASSERT_EQ(steps.size(), 24u);
    ASSERT_EQ(others.size(), 24u);
    EXPECT_EQ(metrics_of(run("there"), "start").at(0).at("phase_clock"), "device");
    for (const char* tag : {"time/forward_seconds", "time/backward_seconds"}) {
      EXPECT_GT(others.back().at(tag).get<double>(), 0) << tag;
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const char* tag : {"train/loss", "train/nll", "train/gradient_norm"}) {
        if (!steps[i].contains(tag)) continue;
        const auto want = steps[i].at(tag).get<double>();
        const double near = (i < 3 ? first : later) * std::abs(want) + 1e-9;
        EXPECT_NEAR(others[i].at(tag).get<double>(), want, near) << tag << " of step " << i + 1;
      }
    }
    const auto evaluations = metrics_of(run("here"), "evaluation");
    const auto other_evaluations = metrics_of(run("there"), "evaluation");
    ASSERT_EQ(evaluations.size(), other_evaluations.size());
    ASSERT_GE(evaluations.size(), 3u);
    for (std::size_t i = 0; i < evaluations.size(); ++i) {
      for (const auto& [tag, value] : evaluations[i].items()) {
        if (tag != "eval/loss" && tag != "eval/nll") continue;
        const auto want = value.get<double>();
        EXPECT_NEAR(other_evaluations[i].at(tag).get<double>(), want, later * std::abs(want) + 1e-9)
            << tag << " of evaluation " << i;
      }
    }
    share_network();
  }

  // How many kernels, or attentions, ran there.
  static int64_t count_of(const char* what, const ProgramResult& there) {
    const std::regex count(fmt::format(R"(, (\d+) {})", what));
    std::smatch found;
    return std::regex_search(there.errors, found, count) ? std::stol(found[1].str()) : -1;
  }

  // From here on both runs have one network, so that roundings of the training do not count.
  void share_network() const {
    fs::remove_all(run("there") / "checkpoints");
    fs::copy(run("here") / "checkpoints", run("there") / "checkpoints",
             fs::copy_options::recursive);
  }

  // The text with # in place of each number with a point, and these numbers.
  static std::pair<std::string, std::vector<double>> parts_of(const std::string& text) {
    static const std::regex number(R"(-?\d+\.\d+(e[-+]\d+)?)");
    std::vector<double> numbers;
    for (std::sregex_iterator at(text.begin(), text.end(), number), end; at != end; ++at) {
      numbers.push_back(std::stod(at->str()));
    }
    std::string words = std::regex_replace(text, number, "#");
    return {std::regex_replace(words, std::regex("/(here|there)\\b"), "/RUN"), numbers};
  }

  // `words` with RUN in place of the run's folder print the same in both places.
  void expect_equal_use(const std::string& words) const {
    auto with = [&](const std::string& name) {
      std::string out = words;
      out.replace(out.find("RUN"), 3, run(name).string());
      return out;
    };
    const ProgramResult a = here(with("here"));
    const ProgramResult b = there(with("there"));
    ASSERT_EQ(a.exit_code, 0) << a.errors;
    ASSERT_EQ(b.exit_code, 0) << b.errors;
    const auto [words_here, numbers_here] = parts_of(a.output);
    const auto [words_there, numbers_there] = parts_of(b.output);
    EXPECT_EQ(words_there, words_here) << b.output << a.output;
    ASSERT_EQ(numbers_there.size(), numbers_here.size());
    for (std::size_t i = 0; i < numbers_here.size(); ++i) {
      EXPECT_NEAR(numbers_there[i], numbers_here[i], 1e-5 * std::abs(numbers_here[i]) + 1e-6)
          << b.output << a.output;
    }
  }

  // What a step of training brings there and back, from two lengths of a run.
  void expect_waits(const std::string& words) const {
    if (!on_gpu()) {
      EXPECT_EQ(of_a_step(words).waits, kWaits);
    }
  }
  Traffic of_a_step(const std::string& words) const {
    Traffic of[2];
    for (const int steps : {5, 15}) {
      const std::string name = fmt::format("traffic{}", steps);
      const ProgramResult r =
          there(train(name, fmt::format("{}{} training.steps={} evaluation.every=0", words_there(),
                                        words, steps)));
      EXPECT_EQ(r.exit_code, 0) << r.errors;
      const std::size_t at = r.errors.find("test device: ");
      Traffic& t = of[steps == 5 ? 0 : 1];
      EXPECT_EQ(std::sscanf(r.errors.c_str() + at, "test device: %ld copies in, %ld out, %ld waits",
                            &t.in, &t.out, &t.waits),
                3)
          << r.errors;
    }
    const auto each = [](int64_t few, int64_t many) { return (many - few + 9) / 10; };
    return {each(of[0].in, of[1].in), each(of[0].out, of[1].out), each(of[0].waits, of[1].waits)};
  }

  void expect_equal_images(const std::string& words, double later);

  TemporaryFolder folder_;
  std::string launched_;  // words before those of training
  std::string devices_;   // variables of the test device
};

// The other tests mean something because of this: 139 is a segmentation fault.
TEST_P(Placement, ATensorInTheWrongPlaceEndsTheProgram) {
  if (on_gpu()) GTEST_SKIP() << "a test of the test device";
  EXPECT_EQ(there("touch").exit_code, 139);
}

// With them a step has about 20 kernels more, without them the optimizer's alone.
TEST_P(Placement, KernelsRunWhenAsked) {
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  const ProgramResult r =
      there(train("run", words_there() + "training.steps=10 evaluation.every=0"));
  ASSERT_EQ(r.exit_code, 0) << r.errors;
  if (on_gpu()) GTEST_SKIP() << "nobody counts there";
  EXPECT_EQ(count_of("kernels", r) > 150, GetParam()) << r.errors;
  EXPECT_EQ(count_of("attentions", r) >= 30, GetParam()) << r.errors;
  // Batches come on a stream of their own; each step's is awaited once.
  EXPECT_EQ(count_of("stream waits", r), 10) << r.errors;
}

TEST_P(Placement, OfTranslation) {
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  expect_equal_runs("decoding.beam_size=2 model.attention_dropout=0.1");
  expect_equal_use("evaluate RUN --checkpoint newest");
  write_file(folder_.path() / "lines", "one two three\nfour\nnine eight seven six five\n");
  expect_equal_use(fmt::format("translate RUN --checkpoint newest --n-best 2 --input {}/lines",
                               folder_.path().string()));
  expect_waits("batch.accumulate=3");
}

TEST_P(Placement, OfTexts) {
  write_tiny_bert(folder_.path(), 2);
  ASSERT_EQ(prepare_tiny_texts(folder_.path()), "");
  write_tiny_text_config(folder_.path());
  expect_equal_runs("model.hidden_dropout_prob=0.1");
  expect_equal_use("evaluate RUN --checkpoint newest --split validation");
  expect_equal_use("classify RUN --json 'w11 w12 w13' 'w21 w23'");
  expect_waits("batch.accumulate=2");
}

void Placement::expect_equal_images(const std::string& words, double later) {
  write_tiny_images(folder_.path() / "data");
  write_tiny_image_config(folder_.path() / "tiny.toml", folder_.path() / "data");
  expect_equal_runs(words, later, later);
  expect_equal_use("evaluate RUN --checkpoint newest");
  expect_equal_use(fmt::format("classify RUN --checkpoint newest --json {}/data/val/c1/000.jpeg",
                               folder_.path().string()));
  expect_waits(words);
}

TEST_P(Placement, OfTextsWithValues) {
  write_tiny_bert(folder_.path(), 1);
  ASSERT_EQ(prepare_tiny_texts(folder_.path(), /*values=*/true), "");
  write_tiny_text_config(folder_.path());
  expect_equal_runs("'evaluation.metrics=[\"mse\"]'");
  expect_equal_use("evaluate RUN --checkpoint newest --split validation");
}

TEST_P(Placement, OfPretendedWork) {
  write_file(folder_.path() / "tiny.toml",
             read_file(fs::path(LOCKSTEP_SOURCE) / "configs/pretend.toml"));
  expect_equal_runs(
      "pretend.step_milliseconds=1 pretend.evaluation_milliseconds=1 model.parameters=20000 "
      "batch.accumulate=2");
  expect_equal_use("evaluate RUN --checkpoint newest");
}

// Ranks with a device each; in place of NCCL, Gloo on copies.
TEST_P(Placement, OfTwoRanks) {
  if (on_gpu()) GTEST_SKIP() << "needs two GPUs";
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  launched_ = "launch -n 2 -- ";
  expect_equal_runs("training.shard_optimizer=true comm.bucket_megabytes=0.05");
}

// NCCL refuses ranks that share a GPU; their sums are the CPUs', over shared memory.
TEST_P(Placement, OfTwoRanksThatShareADevice) {
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  launched_ = "launch -n 2 -- ";
  devices_ = "LOCKSTEP_TEST_DEVICES=1";
  const ProgramResult refused = there(train("refused", words_there()));
  if (!on_gpu()) {
    EXPECT_EQ(refused.exit_code, 4) << refused.errors;
    EXPECT_NE(refused.errors.find("2 ranks on this host but 1 usable GPU"), std::string::npos)
        << refused.errors;
  }
  expect_equal_runs(
      "comm.gpu_exchange=host training.shard_optimizer=true comm.bucket_megabytes=0.05");
}

// NCCL's operations end when they fail, and the host learns of it later: no step may be taken with
// what they left.
TEST_P(Placement, AnOperationThatFailsOnADeviceEndsTheStep) {
  if (on_gpu()) GTEST_SKIP() << "a test of the test device";
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  launched_ = "launch -n 2 -- ";
  const ProgramResult r = run_program(
      LOCKSTEP_ON_TEST_DEVICE, train("run", words_there() + "training.steps=20 checkpoint.every=1"),
      "OMP_NUM_THREADS=1 LOCKSTEP_TEST_DEVICE_FAILS=12");
  EXPECT_EQ(r.exit_code, 4) << r.errors;
  EXPECT_NE(r.errors.find("the link of the device is down"), std::string::npos) << r.errors;
  EXPECT_NE(r.errors.find("rank 1"), std::string::npos) << r.errors;
  EXPECT_NE(r.errors.find("gradient bucket"), std::string::npos) << r.errors;
  const auto steps = metrics_of(run("run"), "step"), saved = metrics_of(run("run"), "checkpoint");
  EXPECT_LT(steps.size(), 20u);
  EXPECT_LE(saved.size(), steps.size()) << "the step that failed was not kept";
}

// A device that is full: the step is taken again in smaller parts, or they are chosen before the
// first, and what fits no way is an error that says what would.
TEST_P(Placement, ADeviceWhoseMemoryIsSmall) {
  if (on_gpu()) GTEST_SKIP() << "a test of the test device";
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  const auto trained_in = [&](int64_t bytes, const std::string& name, const std::string& words) {
    return run_program(
        LOCKSTEP_ON_TEST_DEVICE,
        train(name,
              words_there() + "batch.tokens=1024 training.steps=6 evaluation.every=3 " + words),
        fmt::format("OMP_NUM_THREADS=1 LOCKSTEP_TEST_DEVICE_BYTES={}", bytes));
  };
  constexpr int64_t kEnough = int64_t{1} << 30;
  const ProgramResult whole = trained_in(kEnough, "whole", "");
  const ProgramResult parts = trained_in(kEnough, "parts", "batch.accumulate=8");
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  ASSERT_EQ(parts.exit_code, 0) << parts.errors;
  const int64_t most = count_of("bytes at most", whole), least = count_of("bytes at most", parts);
  ASSERT_LT(least, most * 2 / 3);
  const auto expect_same_losses = [&](const std::string& name) {
    const auto steps = metrics_of(run("whole"), "step"), others = metrics_of(run(name), "step");
    ASSERT_EQ(others.size(), steps.size()) << name;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto want = steps[i].at("train/loss").get<double>();
      EXPECT_NEAR(others[i].at("train/loss").get<double>(), want, 1e-4 * want) << name;
    }
  };
  const ProgramResult divided = trained_in((most + least) / 2, "divided", "");
  ASSERT_EQ(divided.exit_code, 0) << divided.errors;
  EXPECT_NE(divided.errors.find("ran out of memory"), std::string::npos) << divided.errors;
  expect_same_losses("divided");
  const ProgramResult fitted = trained_in((most + least) / 2, "fitted", "training.fit_memory=true");
  ASSERT_EQ(fitted.exit_code, 0) << fitted.errors;
  EXPECT_EQ(fitted.errors.find("ran out of memory"), std::string::npos) << fitted.errors;
  expect_same_losses("fitted");
  EXPECT_LT(count_of("bytes at most", fitted), most);

  std::smatch weights;
  const std::regex counted("([0-9,]+) weights");
  ASSERT_TRUE(std::regex_search(whole.errors, weights, counted)) << whole.errors;
  std::string digits = weights[1].str();
  std::erase(digits, ',');
  const int64_t count = std::stol(digits);
  const auto expect_refused = [&](int64_t bytes, const std::string& says) {
    const ProgramResult r = trained_in(bytes, fmt::format("of{}", bytes), "");
    EXPECT_EQ(r.exit_code, 4) << r.errors;
    EXPECT_NE(r.errors.find(says), std::string::npos) << r.errors;
    EXPECT_NE(r.errors.find("because: test device out of memory. Tried to allocate"),
              std::string::npos)
        << r.errors;
    EXPECT_EQ(r.errors.find("Of the allocated memory"), std::string::npos) << r.errors;
  };
  expect_refused(count * 6, fmt::format("has not the memory for {} weights and their gradients",
                                        weights[1].str()));
  expect_refused(count * 10,
                 "has not the memory for weights, gradients and optimizer of a training");
  expect_refused(count * 18, "error: not enough memory");  // not even for the data of a step
  const ProgramResult unfit = trained_in(count * 18, "unfit", "training.fit_memory=true");
  EXPECT_EQ(unfit.exit_code, 4) << unfit.errors;
  EXPECT_NE(unfit.errors.find("the smallest trial step needs"), std::string::npos) << unfit.errors;

  // What is not a training has its batches from the configuration.
  const ProgramResult used =
      run_program(LOCKSTEP_ON_TEST_DEVICE,
                  fmt::format("evaluate {} --checkpoint newest", run("whole").string()),
                  fmt::format("OMP_NUM_THREADS=1 LOCKSTEP_TEST_DEVICE_BYTES={}", count * 10));
  EXPECT_EQ(used.exit_code, 4) << used.errors;
  EXPECT_NE(used.errors.find("error: not enough memory"), std::string::npos) << used.errors;
}

// What fails is the machine, so the job goes on from its newest checkpoint.
TEST_P(Placement, ADeviceThatFailsIsAFailureOfTheMachine) {
  if (on_gpu()) GTEST_SKIP() << "a test of the test device";
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  const std::string words = words_there() + "training.steps=12 checkpoint.every=1";
  devices_ = fmt::format("LOCKSTEP_TEST_DEVICE_BREAKS={}", GetParam() ? 120 : 8);
  const ProgramResult once = there(train("once", words));
  EXPECT_EQ(once.exit_code, 4) << once.errors;
  EXPECT_NE(
      once.errors.find("error: a GPU failed\n  because: CUDA error: an illegal memory access was "
                       "encountered\n  try: start again"),
      std::string::npos)
      << once.errors;
  EXPECT_EQ(once.errors.find("CUDA_LAUNCH_BLOCKING"), std::string::npos) << once.errors;
  launched_ = "launch -n 2 --restarts 1 -- ";
  const ProgramResult again = there(train("again", words));
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_NE(again.errors.find("an illegal memory access was encountered"), std::string::npos)
      << again.errors;
  EXPECT_EQ(metrics_of(run("again"), "step").size(), 12u);
}

// Micro-batches and a 16-bit copy of the weights; products of other layouts round in another order.
TEST_P(Placement, OfTranslationInBf16) {
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  expect_equal_runs("run.precision=bf16 batch.accumulate=2 optimizer.name=adamw", 2e-2,
                    GetParam() ? 3e-3 : 1e-3);
}

// With loss scaling, as on GPUs before Ampere.
TEST_P(Placement, OfTranslationInFp16) {
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  expect_equal_runs("run.precision=fp16 model.attention_dropout=0.1", 2e-2, 3e-3);
}

// A network of ReLUs makes a jump where rounding decides on which side of 0 a number lies.
TEST_P(Placement, OfImagesByResNet) {
  expect_equal_images("model.name=resnet18 optimizer.lr=1e-5", 2e-2);
}

// By 24 steps roundings have grown to 2e-5 on a CPU with AVX-512 and without bf16, to less on
// others.
TEST_P(Placement, OfImagesByViT) {
  expect_equal_images("model.name=vit_ti16 model.patch=8 model.stem=imagenet",
                      GetParam() ? 1e-3 : 1e-4);
}

INSTANTIATE_TEST_SUITE_P(By, Placement, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Kernels" : "Operations");
});

}  // namespace
}  // namespace lockstep
