// Training where no machine has all shards: ranks in folders of their own, on this host.
#include <gtest/gtest.h>

#include <numeric>

#include "support/expect_says.h"
#include "support/ranks_apart.h"
#include "support/tiny_corpus.h"
#include "support/tiny_images.h"

namespace lockstep {
namespace {

const std::vector<std::string> kEven = {"train-00000.shard", "train-00002.shard",
                                        "val-00000.shard"};
const std::vector<std::string> kOdd = {"train-00001.shard", "train-00003.shard", "val-00001.shard"};

class SharedImageRuns : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder();
    write_tiny_images(path("tree"), {.train = 12, .val = 4});
    const ProgramResult made = run_lockstep(fmt::format(
        "prepare images {} --out {} --shard-bytes 12000", path("tree").string(), all().string()));
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    for (const auto& names : {kEven, kOdd}) {
      for (const std::string& name : names) ASSERT_TRUE(fs::exists(all() / name)) << name;
    }
    write_tiny_image_config(path("tiny.toml"), "data");
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static fs::path path(const std::string& name) { return folder_->path() / name; }
  static fs::path all() { return path("all"); }

  // A folder for a rank, whose data lacks the shards.
  fs::path place(const std::string& name, const std::vector<std::string>& missing = {}) const {
    const fs::path out = mine_.path() / name;
    copy_without(all(), out / "data", missing);
    return out;
  }
  ProgramResult train(const std::string& name, const std::vector<fs::path>& folders,
                      const std::string& words = "") const {
    return train_apart(folders, fmt::format("{} run.folder={} evaluation.every=4 {}",
                                            path("tiny.toml").string(), run(name).string(), words));
  }
  fs::path run(const std::string& name) const { return mine_.path() / name; }
  void expect_equal_runs(const std::string& a, const std::string& b) const {
    EXPECT_EQ(step_values(run(a), "train/loss"), step_values(run(b), "train/loss"));
    EXPECT_EQ(step_values(run(a), "train/gradient_norm"),
              step_values(run(b), "train/gradient_norm"));
    const auto x = metrics_of(run(a), "evaluation"), y = metrics_of(run(b), "evaluation");
    ASSERT_EQ(x.size(), y.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(x[i].at("eval/loss"), y[i].at("eval/loss"));
  }

  inline static TemporaryFolder* folder_ = nullptr;
  TemporaryFolder mine_;
};

TEST_F(SharedImageRuns, EqualThoseThatHaveAllTheShardsToTheLastDigit) {
  const fs::path a = place("a", kOdd), b = place("b", kEven);
  const ProgramResult whole = train("whole", {place("w0"), place("w1")}, "images.mixup=0.2");
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  EXPECT_EQ(whole.errors.find("shards of"), std::string::npos) << "nothing is fetched";
  EXPECT_FALSE(fs::exists(mine_.path() / "w0/data/.fetched"));
  const ProgramResult apart = train("apart", {a, b}, "images.mixup=0.2");
  ASSERT_EQ(apart.exit_code, 0) << apart.errors;
  expect_says(apart.errors, "shards of train:");
  expect_equal_runs("whole", "apart");
  EXPECT_TRUE(fs::exists(a / "data/.fetched/train-00001.shard"));
  EXPECT_FALSE(fs::exists(a / "data/.fetched/train-00000.shard"));
  EXPECT_FALSE(fs::exists(a / "data/train-00001.shard")) << "the owner's folder stays as it was";
}

// Ranks 0 and 2 see one folder: rank 2 gets what it lacks from rank 0.
TEST_F(SharedImageRuns, OfThreeRanksTwoOfWhichShareAFolderAreEqualToo) {
  const fs::path w = place("w");
  ASSERT_EQ(train("whole", {w, w, w}).exit_code, 0);
  const fs::path a = place("a", kOdd), b = place("b", kEven);
  const ProgramResult apart = train("apart", {a, b, a});
  ASSERT_EQ(apart.exit_code, 0) << apart.errors;
  expect_equal_runs("whole", "apart");
  const ProgramResult resumed = train("apart", {a, b, a}, "training.steps=10 --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  ASSERT_EQ(train("whole", {w, w, w}, "training.steps=10 --resume").exit_code, 0);
  expect_equal_runs("whole", "apart");
}

TEST_F(SharedImageRuns, AreEqualWithALimitToWhatIsKept) {
  const fs::path w = place("w");
  ASSERT_EQ(train("whole", {w, w, w}).exit_code, 0);
  const fs::path a = place("a", kOdd), b = place("b", kEven);
  // Less than a step of the two ranks in `a`, of which either may be ahead.
  const ProgramResult apart = train("apart", {a, b, a}, "images.cache_bytes=8192");
  ASSERT_EQ(apart.exit_code, 0) << apart.errors;
  expect_equal_runs("whole", "apart");
}

TEST_F(SharedImageRuns, NameAShardThatNobodyHas) {
  const ProgramResult apart =
      train("apart", {place("a", {"train-00002.shard"}), place("b", {"train-00002.shard"})});
  EXPECT_EQ(apart.exit_code, 3);
  expect_says(apart.errors, "train-00002.shard: on none of the hosts");
  expect_says(apart.errors, "--copy-share");
}

TEST_F(SharedImageRuns, NameTheImageShardAndHostWhoseBytesDifferFromTheHash) {
  const fs::path a = place("a", kOdd), b = place("b", kEven);
  std::string shard = read_file(b / "data/train-00001.shard");
  for (std::size_t i = 40; i < shard.size(); ++i) shard[i] = static_cast<char>(shard[i] ^ 1);
  write_file(b / "data/train-00001.shard", shard);
  const ProgramResult apart = train("apart", {a, b}, "images.broken=skip");
  EXPECT_NE(apart.exit_code, 0);
  expect_says(apart.errors, "of train-00001.shard on");
  expect_says(apart.errors, "differs from its hash");
}

TEST_F(SharedImageRuns, WithDifferentManifestsAreRefused) {
  const fs::path a = place("a", kOdd), b = place("b", kEven);
  std::string manifest = read_file(b / "data/manifest.json");
  const std::size_t at = manifest.find("sha256\": \"") + 10;
  manifest[at] = manifest[at] == '0' ? '1' : '0';
  write_file(b / "data/manifest.json", manifest);
  const ProgramResult apart = train("apart", {a, b});
  EXPECT_EQ(apart.exit_code, 2) << apart.errors;
  expect_says(apart.errors, "differs between the hosts");
}

// Which images are in which step: tests/unit/batches/image_epochs_test.cpp.
TEST_F(SharedImageRuns, OfTheirOwnShardsMoveNothingAndSeeEachImageOnce) {
  const fs::path a = place("a", kOdd), b = place("b", kEven);
  const ProgramResult own = train("own", {a, b},
                                  "images.share=machine evaluation.every=0 training.steps=0 "
                                  "training.epochs=2");
  ASSERT_EQ(own.exit_code, 0) << own.errors;
  EXPECT_FALSE(fs::exists(a / "data/.fetched")) << "nothing moves";
  EXPECT_FALSE(fs::exists(b / "data/.fetched"));
  const std::vector<double> items = step_values(run("own"), "batch/items");
  ASSERT_EQ(items.size() % 2, 0u);
  const auto half = static_cast<std::ptrdiff_t>(items.size() / 2);
  EXPECT_EQ(std::accumulate(items.begin(), items.begin() + half, 0.0), 48);
  EXPECT_EQ(std::accumulate(items.begin() + half, items.end(), 0.0), 48);

  const fs::path empty = place(
      "c", {"train-00000.shard", "train-00001.shard", "train-00002.shard", "train-00003.shard"});
  const ProgramResult none = train("none", {place("d"), empty}, "images.share=machine");
  EXPECT_EQ(none.exit_code, 2);
  expect_says(none.errors, "has no shard of its own");
}

// Corpora are read at random places: whole files come before the first step.
TEST_F(SharedImageRuns, OfCorporaBringWholeFilesBeforeTheyBegin) {
  ASSERT_EQ(make_tiny_corpus(mine_.path()), "");
  write_tiny_config(mine_.path());
  auto place = [&](const std::string& name, const std::vector<std::string>& missing) {
    copy_without(mine_.path() / "corpus", mine_.path() / name / "corpus", missing);
    return mine_.path() / name;
  };
  auto train = [&](const std::string& name, const std::vector<fs::path>& folders) {
    return train_apart(folders,
                       fmt::format("{} data.corpus=corpus run.folder={} evaluation.every=10",
                                   (mine_.path() / "tiny.toml").string(), run(name).string()));
  };
  const ProgramResult whole = train("whole", {place("w0", {}), place("w1", {})});
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  const fs::path a = place("a", {"train.tokens", "dev.en"}), b = place("b", {"subword.model"});
  const ProgramResult apart = train("apart", {a, b});
  ASSERT_EQ(apart.exit_code, 0) << apart.errors;
  expect_says(apart.errors, "train.tokens came from");
  expect_equal_runs("whole", "apart");
  for (const char* name : {"train.tokens", "dev.en", "subword.model"}) {
    EXPECT_EQ(read_file(a / "corpus" / name), read_file(b / "corpus" / name)) << name;
  }

  const fs::path c = place("c", {"train.tokens"}), d = place("d", {});
  std::string tokens = read_file(d / "corpus/train.tokens");
  tokens[100] = static_cast<char>(tokens[100] ^ 1);
  write_file(d / "corpus/train.tokens", tokens);
  const ProgramResult changed = train("changed", {c, d});
  EXPECT_EQ(changed.exit_code, 3) << changed.errors;
  expect_says(changed.errors, "differs from its SHA-256");
  EXPECT_FALSE(fs::exists(c / "corpus/train.tokens"));
}

}  // namespace
}  // namespace lockstep
