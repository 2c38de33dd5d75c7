// Every change of a file is a point where the process may die and where the disk may refuse: each
// is tried, for all that a run writes into its folder (docs/reliability.md).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <vector>

#include "base/log.h"
#include "support/expect_error.h"
#include "support/failing_files.h"
#include "train/checkpoint/checkpoint.h"
#include "train/folder/run_folder.h"

namespace lockstep {
namespace {

struct NumberedNetwork {
  Parameters parameters;
  torch::Tensor moment;
  NumberedNetwork() {
    parameters.add("weight", {3, 5}, normal(1));
    parameters.allocate(torch::kCPU, torch::kFloat, 1);
    moment = torch::zeros_like(parameters.values());
  }
  // Without the gaps behind them.
  torch::Tensor weight() { return parameters.find("weight")->value; }
  torch::Tensor first_moment() { return moment.narrow(0, 0, weight().numel()); }

  CheckpointContent content(int64_t step = 0) {
    return {.position = {.step = step},
            .parameters = &parameters,
            .optimizer = {.arrays = {{"moment", moment}}, .steps_done = step}};
  }
  // The weights of a step are its number.
  CheckpointContent at_step(int64_t step) {
    torch::NoGradGuard no_grad;
    parameters.values().fill_(static_cast<double>(step));
    moment.fill_(static_cast<double>(-step));
    return content(step);
  }
};

// What a run does to its checkpoints, in parts. `told` is called after each with the newest step
// that is safe from then on.
using Told = std::function<void(int64_t)>;
void write_history(const fs::path& folder, const Told& told) {
  NumberedNetwork network;
  save_checkpoint(folder, network.at_step(10));
  told(10);
  save_checkpoint(folder, network.at_step(20));
  told(20);
  remove_old_checkpoints(folder, 1, {});
  told(20);
  RunPosition evaluated{.step = 20, .evaluated_step = 20};
  renew_position(folder, evaluated);
  told(20);
  save_checkpoint(folder, network.at_step(20));  // by a process that goes on from elsewhere
  told(20);
  save_checkpoint(folder, network.at_step(30));
  told(30);
}

// Returns the step of what a resumed run would begin from, after checking that every number of it
// is of that step; 0 without a checkpoint.
int64_t resumed_step(const fs::path& folder) {
  tidy_checkpoints(folder);
  const std::optional<fs::path> newest = newest_complete_checkpoint(folder);
  if (!newest) return 0;
  NumberedNetwork network;
  CheckpointContent content = network.content();
  const int64_t step = load_checkpoint(*newest, content).step;
  EXPECT_TRUE((network.weight() == static_cast<double>(step)).all().item<bool>());
  EXPECT_TRUE((network.first_moment() == static_cast<double>(-step)).all().item<bool>());
  EXPECT_EQ(content.optimizer.steps_done, step);
  return step;
}

class CrashPoints : public ::testing::Test {
 protected:
  CrashPoints() { at::set_num_threads(1); }  // children of fork() have no pool of threads

  // The folder of one try, below the root whose files fail.
  fs::path fresh() {
    const fs::path path = root_.path() / "run";
    fs::remove_all(path);
    fs::create_directories(path);
    return path;
  }

  long count_changes(const std::function<void(const fs::path&)>& work) {
    const fs::path folder = fresh();
    fail_files(root_.path().c_str(), 0, FileFault::kNone);
    work(folder);
    return stop_failing_files();
  }

  // Runs `work` in a child that dies in its n-th change. Returns the last number that it told.
  int64_t killed_at(long nth, const std::function<void(const fs::path&, const Told&)>& work) {
    const fs::path folder = fresh();
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      fail_files(root_.path().c_str(), nth, FileFault::kKill);
      work(folder, [&](int64_t number) {
        if (::write(ends[1], &number, sizeof number) != sizeof number) ::_exit(9);
      });
      ::_exit(0);
    }
    ::close(ends[1]);
    int64_t told = 0, number = 0;
    while (::read(ends[0], &number, sizeof number) == sizeof number) told = number;
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "change " << nth;
    return told;
  }

  TemporaryFolder root_;
};

TEST_F(CrashPoints, AKillAnywhereLosesNoCheckpointThatWasComplete) {
  const long changes =
      count_changes([](const fs::path& folder) { write_history(folder, [](int64_t) {}); });
  ASSERT_GT(changes, 80);
  for (long nth = 1; nth <= changes; ++nth) {
    const int64_t safe = killed_at(nth, write_history);
    const fs::path folder = root_.path() / "run";
    const int64_t step = resumed_step(folder);
    EXPECT_GE(step, safe) << "change " << nth << " of " << changes;
    EXPECT_LE(step, safe + 10) << "change " << nth << " of " << changes;
    // The next checkpoint of a run that goes on is not in the way of what was left behind.
    NumberedNetwork network;
    save_checkpoint(folder, network.at_step(step + 10));
    EXPECT_EQ(resumed_step(folder), step + 10) << "change " << nth << " of " << changes;
    if (HasFailure()) return;
  }
}

// What the disk refuses is told, by an error that names the file, or is made up for; and what was
// complete stays so.
TEST_F(CrashPoints, ADiskThatRefusesAnywhereLosesNoCheckpointThatWasComplete) {
  const long changes =
      count_changes([](const fs::path& folder) { write_history(folder, [](int64_t) {}); });
  for (FileFault fault :
       {FileFault::kFull, FileFault::kQuota, FileFault::kBroken, FileFault::kReadOnly}) {
    for (long nth = 1; nth <= changes; ++nth) {
      const fs::path folder = fresh();
      int64_t safe = 0;
      fail_files(root_.path().c_str(), nth, fault);
      std::string error;
      try {
        write_history(folder, [&](int64_t step) { safe = step; });
      } catch (const MachineError& refused) {
        error = refused.what();
      }
      stop_failing_files();
      EXPECT_TRUE(safe == 30 || error.find("step_") != std::string::npos) << nth << ": " << error;
      const int64_t step = resumed_step(folder);
      EXPECT_GE(step, safe) << "change " << nth << " of " << changes << ", fault "
                            << static_cast<int>(fault);
      if (HasFailure()) return;
    }
  }
}

// A file system that is not there any more gives an error, not a run that begins anew.
TEST_F(CrashPoints, AFileSystemThatVanishesIsAnErrorOfTheMachine) {
  const long changes =
      count_changes([](const fs::path& folder) { write_history(folder, [](int64_t) {}); });
  for (long nth = 1; nth <= changes; ++nth) {
    const fs::path folder = fresh();
    fail_files(root_.path().c_str(), nth, FileFault::kGone);
    EXPECT_THROW(write_history(folder, [](int64_t) {}), Error) << "change " << nth;
    stop_failing_files();
    if (HasFailure()) return;
  }
}

// A run folder half made is one to begin in, or to go on in, never one that is in the way.
TEST_F(CrashPoints, AKillWhileARunFolderIsMadeLeavesOneToBeginIn) {
  const auto make = [](const fs::path& folder) {
    RunFolder(folder / "run").create("[run]\n", "lockstep\n");
  };
  const long changes = count_changes(make);
  ASSERT_GT(changes, 5);
  for (long nth = 1; nth <= changes; ++nth) {
    killed_at(nth, [&](const fs::path& folder, const Told&) { make(folder); });
    const RunFolder run(root_.path() / "run" / "run");
    if (!fs::exists(run.config())) run.create("[run]\n", "lockstep\n");
    EXPECT_ERROR(run.create("", ""), ConfigError, "already holds a run");
    run.complete("[run]\n", "lockstep\n");  // what --resume does
    EXPECT_EQ(read_file(run.config()), "[run]\n") << "change " << nth;
    EXPECT_EQ(read_file(run.version()), "lockstep\n") << "change " << nth;
    if (HasFailure()) return;
  }
}

// Of a file that is written whole there is always the old text or the new one.
TEST_F(CrashPoints, AKillLeavesTheOldTextOrTheNewOne) {
  const std::string old_text(10'000, 'o'), new_text(20'000, 'n');
  const auto work = [&](const fs::path& folder, const Told& told) {
    write_file(folder / "manifest.json", old_text);
    told(1);
    write_file(folder / "manifest.json", new_text);
    told(2);
  };
  const long changes = count_changes([&](const fs::path& folder) { work(folder, [](int64_t) {}); });
  for (long nth = 1; nth <= changes; ++nth) {
    const int64_t told = killed_at(nth, work);
    const fs::path file = root_.path() / "run" / "manifest.json";
    const std::string text = fs::exists(file) ? read_file(file) : "";
    EXPECT_TRUE(text == new_text || (told < 2 && text == old_text) || (told < 1 && text.empty()))
        << "change " << nth;
  }
}

}  // namespace
}  // namespace lockstep
