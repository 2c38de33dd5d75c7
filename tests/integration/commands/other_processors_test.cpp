// The program on processors that have less than this machine's: qemu's user emulation stands in for
// them. A Nehalem (2008) has SSE alone, a Haswell (2013) AVX2, as AMD's up to Zen 3 have. An
// instruction that the processor lacks ends the program as it would there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "support/expect_says.h"
#include "support/tiny_images.h"
#include "support/tiny_runs.h"
#include "support/tiny_texts.h"

namespace lockstep {
namespace {

struct Processor {
  const char* name;          // qemu's
  const char* instructions;  // LOCKSTEP_ISA's word for the best that it has
};

const std::string kTranslate = fs::path(LOCKSTEP_PROGRAM).parent_path() / "lockstep-translate";

// GoogleTest asks for it by this name. NOLINTNEXTLINE(readability-identifier-naming)
void PrintTo(const Processor& processor, std::ostream* out) { *out << processor.name; }

class OtherProcessors : public ::testing::TestWithParam<Processor> {
 protected:
  void SetUp() override {
    if (std::system("command -v qemu-x86_64-static >/dev/null") != 0) {
      GTEST_SKIP() << "no qemu-x86_64-static (apt-get install qemu-user-static)";
    }
  }

  fs::path folder() const { return folder_.path(); }

  // Without the spin count the program would execute itself again, on this machine's processor.
  static ProgramResult run_there(const std::string& program, const std::string& arguments,
                                 const std::string& before = "") {
    const std::string words = fmt::format("-cpu {} {} {}", GetParam().name, program, arguments);
    return run_program("qemu-x86_64-static", words,
                       "GOMP_SPINCOUNT=10000 OMP_NUM_THREADS=1 " + before, 250);
  }

  static ProgramResult lockstep_there(const std::string& arguments) {
    ProgramResult result = run_there(LOCKSTEP_PROGRAM, arguments);
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.errors;
    return result;
  }

  // Trains three steps of FOLDER/tiny.toml there and here, and compares their losses.
  void expect_equal_losses(const std::string& words) const {
    const auto train = [&](const char* run) {
      return fmt::format(
          "train {0}/tiny.toml run.folder={0}/{1} run.seed=7 training.steps=3 "
          "training.clip_norm=1 checkpoint.every=0 evaluation.every=0 {2}",
          folder().string(), run, words);
    };
    lockstep_there(train("there"));
    const ProgramResult here = run_lockstep(train("here"), "OMP_NUM_THREADS=1");
    ASSERT_EQ(here.exit_code, 0) << here.errors;
    const auto found = metrics_of(folder() / "there", "step");
    const auto wanted = metrics_of(folder() / "here", "step");
    ASSERT_EQ(found.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      const double is = found[i].at("train/loss"), was = wanted[i].at("train/loss");
      EXPECT_NEAR(is, was, 2e-3 * was) << "step " << i + 1;
    }
  }

  TemporaryFolder folder_;
};

TEST_P(OtherProcessors, AreSeenAsWhatTheyAre) {
  const ProgramResult version = run_there(kTranslate, "--version");
  expect_says(version.output, fmt::format(", kernels {}", GetParam().instructions));
}

TEST_P(OtherProcessors, TrainTranslations) {
  ASSERT_EQ(make_tiny_corpus(folder()), "");
  write_tiny_config(folder());
  expect_equal_losses("batch.tokens=32 run.precision=bf16");
  const std::string run = (folder() / "there").string(), edge = (folder() / "edge").string();
  write_file(folder() / "words", "one two three\nfour five\n");
  const std::string input = fmt::format("--input {}/words", folder().string());
  const auto expect_two_lines = [](const ProgramResult& said) {
    EXPECT_EQ(std::count(said.output.begin(), said.output.end(), '\n'), 2) << said.errors;
  };
  expect_two_lines(lockstep_there(fmt::format("translate {} {}", run, input)));
  lockstep_there(fmt::format("export {} --format edge --precision int8 --out {}", run, edge));
  expect_two_lines(run_there(kTranslate, fmt::format("{} {}", edge, input)));
}

TEST_P(OtherProcessors, TrainImages) {
  write_tiny_images(folder() / "data");
  write_tiny_image_config(folder() / "tiny.toml", folder() / "data");
  expect_equal_losses("model.width=8 batch.images=4 optimizer.lr=1e-3 run.precision=fp32");
}

TEST_P(OtherProcessors, TrainTexts) {
  write_tiny_bert(folder(), 2);
  ASSERT_EQ(prepare_tiny_texts(folder()), "");
  write_tiny_text_config(folder());
  expect_equal_losses("run.precision=fp32");
}

INSTANTIATE_TEST_SUITE_P(By, OtherProcessors,
                         ::testing::Values(Processor{"Nehalem", "generic"},
                                           Processor{"Haswell", "avx2"}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lockstep
