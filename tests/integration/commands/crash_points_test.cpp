// Programs that are killed, or whose disk refuses, in the n-th change of a file: a run and a
// preparation, begun again, end as if nothing had happened. By default a sample of all n;
// LOCKSTEP_EVERY_CRASH_POINT=1 tries every one, which takes minutes.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "support/program.h"

namespace lockstep {
namespace {

class CrashPointsOfPrograms : public ::testing::Test {
 protected:
  CrashPointsOfPrograms() {
    write_file(
        folder_.path() / "line.toml",
        "[task]\nname = \"line\"\n[points]\nbatch = 12\n[optimizer]\nname = \"adam\"\n"
        "lr = 0.2\n[schedule]\nname = \"fixed\"\n[training]\nsteps = 8\naverage_decay = 0.9\n"
        "[evaluation]\nevery = 4\n[checkpoint]\nevery = 2\nkeep = 1\n[run]\n"
        "precision = \"fp32\"\n");
  }

  // `what` as failing_files.h has it.
  ProgramResult failing(const std::string& program, const std::string& words, long nth,
                        const std::string& what) const {
    fs::remove(folder_.path() / "count");
    return run_program(program, words,
                       fmt::format("OMP_NUM_THREADS=1 TMPDIR={} LD_PRELOAD={} "
                                   "LOCKSTEP_FAILING_FILES='{} {} {}' LOCKSTEP_COUNTED_FILES={}",
                                   folder_.path().string(), LOCKSTEP_FAILING_FILES, root().string(),
                                   nth, what, (folder_.path() / "count").string()));
  }
  long changes() const {
    long out = 0;
    std::memcpy(&out, read_file(folder_.path() / "count").data(), sizeof out);
    return out;
  }
  // The folder below which changes fail, new and empty.
  fs::path fresh() const {
    fs::remove_all(root());
    fs::create_directories(root());
    return root();
  }
  fs::path root() const { return folder_.path() / "root"; }
  // From 1 to `all`, or a sample of about so many.
  static std::vector<long> points(long all, long sample) {
    const long every = std::getenv("LOCKSTEP_EVERY_CRASH_POINT") != nullptr ? 1 : all / sample + 1;
    std::vector<long> out;
    for (long n = 1; n <= all; n += every) out.push_back(n);
    return out;
  }

  std::string train() const {
    return fmt::format("train {} run.folder={}", (folder_.path() / "line.toml").string(),
                       (root() / "run").string());
  }
  std::string weights() const {
    return read_file(root() / "run" / "checkpoints" / "step_8" / "weights.safetensors");
  }
  void expect_goes_on_to(const std::string& expected, const std::string& when) const {
    ProgramResult again =
        run_program(LOCKSTEP_OWN_TASK, train() + " --resume", "OMP_NUM_THREADS=1");
    if (again.exit_code == 2) again = run_program(LOCKSTEP_OWN_TASK, train(), "OMP_NUM_THREADS=1");
    ASSERT_EQ(again.exit_code, 0) << when << again.errors;
    EXPECT_EQ(weights(), expected) << when;
    const ProgramResult verified =
        run_program(LOCKSTEP_OWN_TASK, "checkpoint verify " + (root() / "run").string());
    EXPECT_EQ(verified.exit_code, 0) << when << verified.output;
    std::vector<int64_t> steps;  // of the lines that count
    for (const auto& event : metrics_of(root() / "run", "step")) {
      const int64_t step = event.at("step");
      while (!steps.empty() && steps.back() >= step) steps.pop_back();
      steps.push_back(step);
    }
    EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8})) << when;
  }

  TemporaryFolder folder_;
};

// Without power files lose what was not synced, too.
TEST_F(CrashPointsOfPrograms, ARunGoesOnFromAKillAndAPowerFailureAnywhere) {
  fresh();
  ASSERT_EQ(failing(LOCKSTEP_OWN_TASK, train(), 0, "none").exit_code, 0);
  const std::string whole = weights();
  const long all = changes();
  ASSERT_GT(all, 100);
  for (const char* fault : {"kill", "power"}) {
    for (long nth : points(all, 10)) {
      fresh();
      const ProgramResult ended = failing(LOCKSTEP_OWN_TASK, train(), nth, fault);
      // The checkpoints of a run that writes beside the training are not always in the same place.
      if (ended.exit_code == 0) continue;
      expect_goes_on_to(whole, fmt::format("{} in change {} of {}: ", fault, nth, all));
      if (HasFailure()) return;
    }
  }
}

TEST_F(CrashPointsOfPrograms, ARunGoesOnFromADiskThatRefusedAnywhere) {
  fresh();
  ASSERT_EQ(failing(LOCKSTEP_OWN_TASK, train(), 0, "none").exit_code, 0);
  const std::string whole = weights();
  const long all = changes();
  for (const char* fault : {"ENOSPC", "EIO", "EROFS", "ESTALE"}) {
    for (long nth : points(all, 3)) {
      fresh();
      const ProgramResult refused = failing(LOCKSTEP_OWN_TASK, train(), nth, fault);
      const std::string when = fmt::format("{} in change {} of {}: ", fault, nth, all);
      if (refused.exit_code == 0) continue;  // it was made up for
      EXPECT_EQ(refused.exit_code, 4) << when << refused.errors;
      expect_goes_on_to(whole, when);
      if (HasFailure()) return;
    }
  }
}

// Checkpoints take seconds each, beside the training: it waits for them, and its result is the
// same.
TEST_F(CrashPointsOfPrograms, ARunOnASlowDiskIsTheSame) {
  fresh();
  ASSERT_EQ(failing(LOCKSTEP_OWN_TASK, train(), 0, "none").exit_code, 0);
  const std::string whole = weights();
  fresh();
  const ProgramResult slow = failing(LOCKSTEP_OWN_TASK, train(), 1, "slow");
  ASSERT_EQ(slow.exit_code, 0) << slow.errors;
  EXPECT_EQ(weights(), whole);
  double longest = 0;
  for (const auto& event : metrics_of(root() / "run", "checkpoint")) {
    longest = std::max(longest, event.at("write_seconds").get<double>());
  }
  EXPECT_GT(longest, 0.3);
}

TEST_F(CrashPointsOfPrograms, APreparationGivesTheSameAfterAKillAnywhere) {
  std::string source, target;
  for (int i = 0; i < 200; ++i) {
    source += fmt::format("line {} of many lines, {} and {}\n", i, i % 7, i % 11);
    target += fmt::format("Zeile {} von vielen Zeilen, {} und {}\n", i, i % 7, i % 11);
  }
  const std::string en = (folder_.path() / "t.en").string(),
                    de = (folder_.path() / "t.de").string();
  write_file(en, source);
  write_file(de, target);
  const std::string prepare =
      fmt::format("prepare text {0} {1} --out {2} --vocab 60 --dev {0} {1} --test {0} {1}", en, de,
                  (root() / "corpus").string());
  const auto contents = [&] {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::directory_iterator(root() / "corpus")) {
      if (entry.is_regular_file()) out[entry.path().filename()] = read_file(entry.path());
    }
    return out;
  };
  fresh();
  ASSERT_EQ(failing(LOCKSTEP_PROGRAM, prepare, 0, "none").exit_code, 0);
  const auto whole = contents();
  const long all = changes();
  for (long nth : points(all, 8)) {
    fresh();
    const ProgramResult killed = failing(LOCKSTEP_PROGRAM, prepare, nth, "kill");
    if (killed.exit_code == 0) continue;
    const ProgramResult again = run_program(LOCKSTEP_PROGRAM, prepare);
    ASSERT_EQ(again.exit_code, 0) << "change " << nth << " of " << all << again.errors;
    EXPECT_EQ(contents(), whole) << "change " << nth << " of " << all;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace lockstep
