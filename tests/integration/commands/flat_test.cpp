// What does not grow: memory, open files and threads of ranks over thousands of steps, checkpoints
// and evaluations, and of a launcher over restarts (docs/reliability.md#nothing-grows).
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "support/background.h"
#include "support/program.h"

namespace lockstep {
namespace {

struct Held {  // by a process
  double megabytes = 0;
  int files = 0, threads = 0;
};

Held held_by(pid_t process) {
  Held out;
  const fs::path proc = fs::path("/proc") / std::to_string(process);
  std::ifstream status(proc / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) out.megabytes = std::atof(line.c_str() + 6) / 1024;
    if (line.starts_with("Threads:")) out.threads = std::atoi(line.c_str() + 8);
  }
  std::error_code gone;
  for (const auto& file : fs::directory_iterator(proc / "fd", gone)) {
    if (!file.path().empty()) ++out.files;
  }
  return out;
}

// Beside them a launcher has a child that ends them should it be killed.
std::vector<pid_t> ranks_of(pid_t process) {
  std::vector<pid_t> out;
  std::error_code gone;
  for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", process), gone)) {
    std::ifstream in(task.path() / "children");
    for (pid_t child = 0; in >> child;) {
      std::ifstream words(fmt::format("/proc/{}/cmdline", child));
      const std::string command(std::istreambuf_iterator<char>(words), {});
      const bool launcher = command.find(std::string("\0launch\0", 8)) != std::string::npos;
      if (!launcher) out.push_back(child);
    }
  }
  return out;
}

class Flat : public ::testing::Test {
 protected:
  // Two ranks with a launcher, as in folder_/run.
  std::unique_ptr<Background> start(const std::string& options, const std::string& words) {
    write_file(folder_.path() / "line.toml",
               "[task]\nname = \"line\"\n[points]\nbatch = 12\n[optimizer]\nname = \"adam\"\n"
               "lr = 0.01\n[schedule]\nname = \"fixed\"\n[training]\naverage_decay = 0.9\n[run]\n"
               "precision = \"fp32\"\n");
    return std::make_unique<Background>(
        fmt::format("launch -n 2 {} -- train {} run.folder={} {}", options,
                    (folder_.path() / "line.toml").string(), run().string(), words),
        folder_.path() / "output", LOCKSTEP_OWN_TASK);
  }
  fs::path run() const { return folder_.path() / "run"; }
  std::string output() const { return read_file(folder_.path() / "output"); }
  int64_t step() const {
    const nlohmann::json live = live_of(run());
    return live.is_object() ? live.value("step", int64_t{0}) : 0;
  }
  bool wait_for_step(int64_t step, double seconds) const {
    const auto start = Background::Clock::now();
    while (this->step() < step && seconds_since(start) < seconds) {
      std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
    return this->step() >= step;
  }
  static void expect_flat(const Held& before, const Held& after, double megabytes,
                          const std::string& what) {
    std::printf("[ %-10s %6.1f MB %3d files %2d threads; later %6.1f MB %3d files %2d threads ]\n",
                what.c_str(), before.megabytes, before.files, before.threads, after.megabytes,
                after.files, after.threads);
    EXPECT_LE(after.megabytes, before.megabytes + megabytes) << what;
    EXPECT_LE(after.files, before.files) << what;
    EXPECT_LE(after.threads, before.threads) << what;
  }

  TemporaryFolder folder_;
};

TEST_F(Flat, RanksOverTenThousandSteps) {
  const auto job = start("", "training.steps=1000000 evaluation.every=250 checkpoint.every=250");
  ASSERT_TRUE(wait_for_step(3000, 100)) << output();
  std::map<pid_t, Held> before;
  for (pid_t rank : ranks_of(job->process())) before[rank] = held_by(rank);
  ASSERT_EQ(before.size(), 2u);
  ASSERT_TRUE(wait_for_step(13'000, 200)) << output();
  // A checkpoint's writer may be at work in one of the looks.
  for (const auto& [rank, held] : before) {
    Held least = held_by(rank);
    for (int look = 0; look < 50; ++look) {
      const Held now = held_by(rank);
      least = {std::min(least.megabytes, now.megabytes), std::min(least.files, now.files),
               std::min(least.threads, now.threads)};
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    expect_flat(held, least, 2, "a rank");
  }
}

TEST_F(Flat, ALauncherOverRestarts) {
  const char* wanted = std::getenv("LOCKSTEP_FLAT_RESTARTS");
  const int restarts = wanted == nullptr ? 12 : std::atoi(wanted);
  const auto job = start("--restarts 3",
                         "training.steps=1000000 evaluation.every=0 checkpoint.every=5 "
                         "points.step_seconds=0.01");
  Held before;
  int64_t reached = 0;
  for (int n = 1; n <= restarts; ++n) {
    // Until there is a checkpoint of this attempt: failures without progress are counted.
    ASSERT_TRUE(wait_for_step(reached + 15, 60)) << "restart " << n << output();
    reached = step();
    if (n == 4) before = held_by(job->process());
    const std::vector<pid_t> ranks = ranks_of(job->process());
    ASSERT_EQ(ranks.size(), 2u) << "restart " << n << output();
    kill(ranks[static_cast<std::size_t>(n % 2)], SIGKILL);
  }
  ASSERT_TRUE(wait_for_step(reached + 15, 60)) << output();
  expect_flat(before, held_by(job->process()), 1, "a launcher");
}

}  // namespace
}  // namespace lockstep
