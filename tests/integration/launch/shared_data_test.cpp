// Data that no host has whole: parts that cluster setup brings, and images that come while the
// ranks train, over virtual networks.
#include <gtest/gtest.h>

#include "support/expect_says.h"
#include "support/program.h"
#include "support/tiny_images.h"
#include "support/virtual_hosts.h"

namespace lockstep {
namespace {

using std::chrono::seconds;

class SharedData : public ::testing::Test {
 protected:
  // Shards of noisy images, 400 for training.
  void prepare(PixelSize size) const {
    write_tiny_images(path("tree"), {.train = 100, .val = 2, .size = size});
    const ProgramResult made = run_lockstep(
        fmt::format("prepare images {} --out {} --shard-bytes {}", path("tree").string(),
                    path("all").string(), 50 * size.width * size.height));
    ASSERT_EQ(made.exit_code, 0) << made.errors;
  }
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  std::vector<std::string> shards() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(path("all"))) {
      if (entry.path().extension() == ".shard") out.push_back(entry.path().filename());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  TemporaryFolder folder_;
};

TEST_F(SharedData, GoesToHostsInPartsAndOverThisLineOnce) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  prepare({60, 60});
  VirtualHosts hosts(
      "[hosts]\nnames = ['a', 'b', 'c']\nfiles = 'own'\n"
      "[[host]]\nname = 'a'\nuser = 'ana'\n[[host]]\nname = 'b'\nuser = 'ben'\n");
  const std::string setup =
      fmt::format("'{}' cluster setup -H a,b,c --no-program --copy-share {}:/tmp/images",
                  LOCKSTEP_PROGRAM, path("all").string());
  const uint64_t before = hosts.lab().counts(kControlHost).bytes_in;
  const auto [code, said] = hosts.run("control", setup, seconds(60));
  ASSERT_EQ(code, 0) << said;
  const double sent = static_cast<double>(hosts.lab().counts(kControlHost).bytes_in - before);
  double bytes = 0;
  const std::vector<std::string> names = shards();
  ASSERT_GE(names.size(), 3u);
  for (std::size_t s = 0; s < names.size(); ++s) {
    bytes += static_cast<double>(fs::file_size(path("all") / names[s]));
    for (int h = 0; h < 3; ++h) {
      const fs::path there =
          hosts.lab().path_on_this_machine(std::string(1, "abc"[h]), "/tmp/images");
      EXPECT_EQ(fs::exists(there / names[s]), static_cast<int>(s % 3) == h)
          << names[s] << " on " << h;
      EXPECT_TRUE(fs::exists(there / "manifest.json"));
      EXPECT_TRUE(fs::exists(there / "train.sums"));
    }
  }
  EXPECT_LT(sent, 1.5 * bytes + 300'000) << "once, and what ssh and the small files take";
  expect_says(hosts.run("control", setup, seconds(60)).second, "files, none changed");

  const auto [refused, why] =
      hosts.run("control", fmt::format("'{}' cluster setup -H a,b --no-program --copy-share {}",
                                       LOCKSTEP_PROGRAM, path("tree").string()));
  EXPECT_EQ(refused, 2) << why;
  expect_says(why, "lockstep prepare images");
}

TEST_F(SharedData, ComesWhileTheRanksTrainTheFirstStepBeforeTheLastByte) {
  SKIP_WITHOUT_VIRTUAL_HOSTS();
  prepare({120, 120});
  write_tiny_image_config(path("tiny.toml"), path("data"));
  fs::create_directory(path("data"));
  VirtualHosts hosts(
      fmt::format("[network]\nrate_mbit = 8\n[hosts]\nnames = ['a', 'b']\nprivate = ['{}']\n",
                  path("data").string()));
  const std::string all = path("all").string(), data = path("data").string();
  ASSERT_EQ(hosts.run("a", fmt::format("cp {}/* {}", all, data)).first, 0);
  ASSERT_EQ(
      hosts.run("b", fmt::format("cp {0}/*.json {0}/*.index {0}/*.sums {1}", all, data)).first, 0);
  // Rank 0 lacks all shards. Ranks that do not meet leave the line to the images.
  auto launch = hosts.start(
      "control",
      {LOCKSTEP_PROGRAM, "launch", "-H", "b:1,a:1", "--", "train", path("tiny.toml").string(),
       "run.folder=" + path("run").string(), "training.steps=1000", "training.progress_every=1",
       "batch.images=4", "comm.strategy=local_sgd", "comm.local_after=0", "comm.local_steps=500"});
  launch->expect("Epoch: [0][0/");
  const auto [code, kilobytes] =
      hosts.run("b", fmt::format("du -ck {}/.fetched/train*.shard | tail -n 1", data));
  ASSERT_EQ(code, 0) << kilobytes;
  int64_t whole = 0;
  for (const std::string& name : shards()) {
    whole +=
        name.starts_with("train") ? static_cast<int64_t>(fs::file_size(path("all") / name)) : 0;
  }
  EXPECT_GT(std::stoll(kilobytes), 0);
  EXPECT_LT(std::stoll(kilobytes) * 1024, whole * 2 / 3);
  launch->signal(SIGINT);
  launch->wait(seconds(60));
}

}  // namespace
}  // namespace lockstep
