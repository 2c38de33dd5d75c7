// Every task on a device that is not the CPU (tests/support/test_device.h): it trains, evaluates,
// saves, resumes and is used there as here. A tensor in the wrong place ends the program; what the
// host waits for is counted.
#include "support/placement.h"

#include "support/tiny_corpus.h"
#include "support/tiny_images.h"
#include "support/tiny_texts.h"

namespace lockstep {
namespace {

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

class PlacementOfImages : public Placement {
 protected:
  void expect_equal_images(const std::string& words, double later) {
    write_tiny_images(folder_.path() / "data");
    write_tiny_image_config(folder_.path() / "tiny.toml", folder_.path() / "data");
    expect_equal_runs(words, later, later);
    expect_equal_use("evaluate RUN --checkpoint newest");
    expect_equal_use(fmt::format("classify RUN --checkpoint newest --json {}/data/val/c1/000.jpeg",
                                 folder_.path().string()));
    expect_waits(words);
  }
};

// A network of ReLUs makes a jump where rounding decides on which side of 0 a number lies.
TEST_P(PlacementOfImages, ByResNet) {
  expect_equal_images("model.name=resnet18 model.width=16 optimizer.lr=1e-5", 2e-2);
}

// By 24 steps roundings have grown to 2e-5 on a CPU with AVX-512 and without bf16, to less on
// others.
TEST_P(PlacementOfImages, ByViT) {
  expect_equal_images("model.name=vit_ti16 model.patch=8 model.stem=imagenet",
                      GetParam() ? 1e-3 : 1e-4);
}

INSTANTIATE_TEST_SUITE_P(By, Placement, ::testing::Bool(), kind_of_kernels);
INSTANTIATE_TEST_SUITE_P(By, PlacementOfImages, ::testing::Bool(), kind_of_kernels);

}  // namespace
}  // namespace lockstep
