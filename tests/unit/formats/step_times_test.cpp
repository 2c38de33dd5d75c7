#include "formats/step_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "support/expect_error.h"

namespace lockstep {
namespace {

RankTimes times_of(int rank, int64_t step) {
  RankTimes t;
  t.data = 0.125F;
  t.forward = 0.25F + static_cast<float>(rank);
  t.backward = 0.5F;
  t.wait = 0.0625F;
  t.optimizer = static_cast<float>(step);
  t.other = 1;
  t.hidden = 2;
  t.peers = 3;
  t.sent_bytes = 4096;
  t.received_bytes = 8192;
  return t;
}

class StepTimesOnDisk : public ::testing::Test {
 protected:
  fs::path folder() const { return folder_.path() / "times"; }

  void write(int64_t first, int64_t last, int ranks) const {
    StepTimesWriter writer(folder(), ranks);
    for (int64_t step = first; step <= last; ++step) {
      std::vector<RankTimes> all;
      for (int r = 0; r < ranks; ++r) all.push_back(times_of(r, step));
      writer.add(step, 1.7e9 + static_cast<double>(step), all);
    }
  }
  static std::vector<StepTimes> read(const fs::path& file) {
    std::vector<StepTimes> out;
    const int64_t count = read_step_times(file, [&](const StepTimes& s) { out.push_back(s); });
    EXPECT_EQ(count, static_cast<int64_t>(out.size()));
    return out;
  }

  TemporaryFolder folder_;
};

TEST_F(StepTimesOnDisk, RoundTrips) {
  write(1, 3000, 3);
  const std::vector<fs::path> files = step_times_files(folder());
  ASSERT_EQ(files.size(), 1);
  EXPECT_EQ(files[0].filename(), "attempt_1.bin");
  EXPECT_EQ(fs::file_size(files[0]), 16 + 3000 * (16 + 3 * 40));
  const std::vector<StepTimes> steps = read(files[0]);
  ASSERT_EQ(steps.size(), 3000);
  EXPECT_EQ(steps[2999].step, 3000);
  EXPECT_EQ(steps[2999].begin, 1.7e9 + 3000);
  ASSERT_EQ(steps[7].ranks.size(), 3);
  const RankTimes& r = steps[7].ranks[2];
  EXPECT_EQ(r.data, 0.125F);
  EXPECT_EQ(r.forward, 2.25F);
  EXPECT_EQ(r.backward, 0.5F);
  EXPECT_EQ(r.wait, 0.0625F);
  EXPECT_EQ(r.optimizer, 8);
  EXPECT_EQ(r.other, 1);
  EXPECT_EQ(r.hidden, 2);
  EXPECT_EQ(r.peers, 3);
  EXPECT_EQ(r.sent_bytes, 4096);
  EXPECT_EQ(r.received_bytes, 8192);
  const std::optional<StepTimesExtent> extent = step_times_extent(files[0]);
  ASSERT_TRUE(extent);
  EXPECT_EQ(extent->ranks, 3);
  EXPECT_EQ(extent->steps, 3000);
  EXPECT_EQ(extent->first, 1);
  EXPECT_EQ(extent->last, 3000);
}

TEST_F(StepTimesOnDisk, EveryAttemptHasAFileInTheirOrder) {
  for (int i = 0; i < 11; ++i) write(i + 1, i + 1, 1);
  const std::vector<fs::path> files = step_times_files(folder());
  ASSERT_EQ(files.size(), 11);
  EXPECT_EQ(files[1].filename(), "attempt_2.bin");
  EXPECT_EQ(files[10].filename(), "attempt_11.bin");
  EXPECT_EQ(read(files[10])[0].step, 11);
  write_file(folder() / "attempt_x.bin", "");
  write_file(folder() / "attempt_.bin", "");
  fs::remove(files[0]);  // the number of a file that is gone is not used again
  write(12, 12, 1);
  EXPECT_EQ(step_times_files(folder()).back().filename(), "attempt_12.bin");
  EXPECT_EQ(step_times_files(folder()).size(), 11);
}

TEST_F(StepTimesOnDisk, AWriterWithoutStepsLeavesNothing) {
  { StepTimesWriter writer(folder(), 2); }
  EXPECT_FALSE(fs::exists(folder()));
  EXPECT_TRUE(step_times_files(folder()).empty());
}

TEST_F(StepTimesOnDisk, ShowsWhatWasFlushed) {
  StepTimesWriter writer(folder(), 1);
  writer.add(5, 1.0, std::vector{times_of(0, 5)});
  EXPECT_TRUE(read(step_times_files(folder())[0]).empty());
  writer.flush();
  EXPECT_EQ(read(step_times_files(folder())[0]).size(), 1);
  EXPECT_THROW(writer.add(6, 2.0, {}), std::invalid_argument);
  EXPECT_THROW(StepTimesWriter(folder(), 0), std::invalid_argument);
}

TEST_F(StepTimesOnDisk, PassesOverWhatAKilledWriterLeft) {
  write(1, 4, 2);
  const fs::path file = step_times_files(folder())[0];
  const std::string whole = read_file(file);
  write_file(file, whole.substr(0, whole.size() - 1));
  EXPECT_EQ(read(file).size(), 3);
  write_file(file, whole.substr(0, 16));
  EXPECT_TRUE(read(file).empty());
  for (std::size_t n : {15, 8, 3, 0}) {
    write_file(file, whole.substr(0, n));
    EXPECT_TRUE(read(file).empty()) << n;
    EXPECT_FALSE(step_times_extent(file)) << n;
  }
}

TEST_F(StepTimesOnDisk, RefusesOtherFiles) {
  write(1, 1, 1);
  const fs::path file = step_times_files(folder())[0];
  const std::string whole = read_file(file);
  std::string other = whole;
  other[0] = 'X';
  write_file(file, other);
  EXPECT_ERROR(read(file), DataError, "does not start with \"LSTIMING\"");
  other = whole;
  other[8] = 9;
  write_file(file, other);
  EXPECT_ERROR(read(file), DataError, "version 9, this program reads version 1");
  other = whole;
  other[12] = 0;
  write_file(file, other);
  EXPECT_ERROR(read(file), DataError, "0 ranks are not possible");
  write_file(file, "text");
  EXPECT_ERROR(read(file), DataError, "it has 4 bytes");
  EXPECT_ERROR(read(folder() / "attempt_9.bin"), DataError, "no such file");
}

TEST_F(StepTimesOnDisk, SaysThatADiskRefuses) {
  write_file(folder_.path() / "times", "a file");
  StepTimesWriter writer(folder(), 1);
  EXPECT_ERROR(writer.add(1, 0, std::vector{times_of(0, 1)}), MachineError, "times");
}

// Generous: measured are 0.1 s for 100,000 steps of 8 ranks at most.
TEST_F(StepTimesOnDisk, ReadsManyStepsQuickly) {
  constexpr int64_t kSteps = 100'000;
  write(1, kSteps, 8);
  const auto before = std::chrono::steady_clock::now();
  double sum = 0;
  read_step_times(step_times_files(folder())[0],
                  [&](const StepTimes& s) { sum += s.ranks[7].forward; });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - before;
  EXPECT_EQ(sum, 7.25 * kSteps);
  EXPECT_LT(took.count(), 2);
}

}  // namespace
}  // namespace lockstep
