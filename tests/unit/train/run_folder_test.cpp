#include "train/folder/run_folder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {
namespace {

// As programs under another MPI's mpirun, which each take themselves for the only rank.
TEST(RunFolder, OneOfManyTakesTheFolderOfAFailedStart) {
  TemporaryFolder temporary;
  for (int round = 0; round < 50; ++round) {
    const RunFolder folder(temporary.path() / fmt::format("run{}", round));
    folder.create("failed = true\n", "");
    for (int rank : {0, 1, 2}) write_file(folder.error_of(rank), "error: no data\n");
    std::atomic<int> made = 0, refused = 0;
    std::vector<std::thread> processes;
    for (int i = 0; i < 6; ++i) {
      processes.emplace_back([&, i] {
        try {
          folder.create(fmt::format("by = {}\n", i), "");
          ++made;
        } catch (const ConfigError&) {
          ++refused;
        }
      });
    }
    for (std::thread& process : processes) process.join();
    ASSERT_EQ(made, 1) << "round " << round;
    ASSERT_EQ(refused, 5);
    ASSERT_TRUE(read_file(folder.config()).starts_with("by = "));
    ASSERT_FALSE(fs::exists(folder.error_of(0)));
  }
}

TEST(RunFolder, IsNotTakenFromARunThatStartsOrTrained) {
  TemporaryFolder temporary;
  const RunFolder starts(temporary.path() / "starts"), trained(temporary.path() / "trained"),
      saved(temporary.path() / "saved");
  for (const RunFolder& folder : {starts, trained, saved}) folder.create("kept = true\n", "");
  write_file(trained.error_of(0), "error: a peer was lost\n");
  write_file(trained.metrics(), "");
  write_file(saved.error_of(0), "error: a peer was lost\n");
  fs::create_directory(saved.checkpoints() / "step_1");
  for (const RunFolder& folder : {starts, trained, saved}) {
    EXPECT_THROW(folder.create("", ""), ConfigError) << folder.path();
    EXPECT_EQ(read_file(folder.config()), "kept = true\n");
  }
  EXPECT_TRUE(fs::exists(saved.error_of(0)));
}

}  // namespace
}  // namespace lockstep
