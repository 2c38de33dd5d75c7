// Ranks on processors that are not alike, as rented machines often have: one runs here, the other
// on a processor that qemu's user emulation stands in for. After every step they must hold the same
// bits, whatever instructions computed them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ostream>
#include <tuple>

#include "support/expect_says.h"
#include "support/ranks_apart.h"
#include "support/tiny_corpus.h"
#include "support/tiny_images.h"

namespace lockstep {
namespace {

struct Training {
  const char* name;
  const char* settings;
};

// GoogleTest asks for it by this name. NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Training& training, std::ostream* out) { *out << training.settings; }

// A training, and the second rank's processor, as qemu calls it.
class UnlikeProcessors : public ::testing::TestWithParam<std::tuple<Training, std::string>> {
 protected:
  void SetUp() override {
    if (std::system("command -v qemu-x86_64-static >/dev/null") != 0) {
      GTEST_SKIP() << "no qemu-x86_64-static (apt-get install qemu-user-static)";
    }
  }

  // Trains FOLDER/tiny.toml; the ranks compare their bits after each step.
  void expect_equal_bits() const {
    const auto& [training, processor] = GetParam();
    const ProgramResult result = train_apart(
        {folder_.path(), folder_.path()},
        fmt::format("tiny.toml run.folder=run run.precision=fp32 training.average_decay=0.9 "
                    "training.check_weights_every=1 guard.unequal_ranks=stop evaluation.every=0 {}",
                    training.settings),
        250, "qemu-x86_64-static -cpu " + processor);
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    // Random numbers are drawn by other instructions there.
    if (processor == "Nehalem") {
      expect_says(result.errors, "in the initial weights: all ranks begin with those of rank 0");
    }
  }

  TemporaryFolder folder_;
};

std::string name_of(const ::testing::TestParamInfo<UnlikeProcessors::ParamType>& info) {
  return std::get<0>(info.param).name + std::get<1>(info.param);
}

// A Nehalem (2008) has SSE alone, a Haswell (2013) AVX2.
const auto kProcessors = ::testing::Values("Nehalem", "Haswell");

using UnlikeTranslators = UnlikeProcessors;

TEST_P(UnlikeTranslators, HoldTheSameBits) {
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  expect_equal_bits();
}

INSTANTIATE_TEST_SUITE_P(
    By, UnlikeTranslators,
    ::testing::Combine(
        ::testing::Values(
            Training{"Adam", "training.steps=8 batch.tokens=64 training.clip_norm=0.5"},
            Training{"Novograd", "training.steps=8 batch.tokens=64 optimizer.name=novograd"},
            Training{"PowerSgd",
                     "training.steps=8 batch.tokens=64 comm.hook=powersgd "
                     "comm.powersgd.start_step=1"},
            Training{"Diloco",
                     "training.steps=8 batch.tokens=64 comm.strategy=diloco comm.local_after=2 "
                     "comm.local_steps=3"}),
        kProcessors),
    name_of);

using UnlikeClassifiers = UnlikeProcessors;

TEST_P(UnlikeClassifiers, HoldTheSameBits) {
  write_tiny_images(folder_.path() / "data");
  write_tiny_image_config(folder_.path() / "tiny.toml", folder_.path() / "data");
  expect_equal_bits();
}

INSTANTIATE_TEST_SUITE_P(
    By, UnlikeClassifiers,
    ::testing::Combine(
        ::testing::Values(Training{"Sgd", "training.steps=6 model.width=8 batch.images=8"},
                          Training{"Larc",
                                   "training.steps=6 model.width=8 batch.images=8 larc.mode=scale "
                                   "training.clip_norm=0"}),
        kProcessors),
    name_of);

}  // namespace
}  // namespace lockstep
