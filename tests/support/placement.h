// A run of the program on the CPU and one on a device that is not the CPU (support/test_device.h),
// or on a GPU, compared.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "support/program.h"

namespace lockstep {

// A step is waited for twice: for its figures and for the norm of its gradients.
inline constexpr int64_t kWaits = 2;

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

  TemporaryFolder folder_;
  std::string launched_;  // words before those of training
  std::string devices_;   // variables of the test device
};

inline std::string kind_of_kernels(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "Kernels" : "Operations";
}

}  // namespace lockstep
