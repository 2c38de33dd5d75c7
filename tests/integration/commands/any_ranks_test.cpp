// training.reproducible = "any-ranks": one rank, two and four take steps of the same bits, on one
// machine and over the network, and a run may go on with another number of them.
#include <gtest/gtest.h>

#include "support/tiny_images.h"
#include "support/tiny_runs.h"
#include "support/tiny_texts.h"

namespace lockstep {
namespace {

class AnyRanks : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { folder_ = new TemporaryFolder(); }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static fs::path folder() { return folder_->path(); }

  static ProgramResult train(const std::string& config, const std::string& name, int ranks,
                             const std::string& words) {
    return run_lockstep(
        fmt::format("launch -n {} -- train {} run.folder={} training.reproducible=any-ranks "
                    "training.average_decay=0.9 run.seed=4 {}",
                    ranks, config, (folder() / name).string(), words),
        "OMP_NUM_THREADS=1");
  }
  // Of all that the last checkpoint holds but state.json, which has the guard's figures.
  static std::string bits_of(const std::string& name, int step) {
    std::string out;
    for (const char* file : {"weights", "average", "optimizer"}) {
      out += read_file(folder() / name / "checkpoints" / fmt::format("step_{}", step) /
                       fmt::format("{}.safetensors", file));
    }
    return out;
  }
  // Trains 10 steps with all numbers of ranks.
  static void expect_equal(const std::string& task, const std::string& config,
                           const std::string& words) {
    std::string first;
    for (const auto& [ranks, more] : {std::pair{1, ""}, std::pair{2, ""}, std::pair{4, ""},
                                      std::pair{4, "comm.shared_memory=false"}}) {
      const std::string name = fmt::format("{}{}{}", task, ranks, *more == 0 ? "" : "_network");
      const ProgramResult trained =
          train(config, name, ranks, fmt::format("{} {} training.steps=10", words, more));
      ASSERT_EQ(trained.exit_code, 0) << trained.errors;
      if (first.empty()) first = bits_of(name, 10);
      EXPECT_TRUE(bits_of(name, 10) == first) << name << " " << words;
    }
    ASSERT_EQ(train(config, task + "_parts", 4, words + " training.steps=5").exit_code, 0);
    ASSERT_EQ(train(config, task + "_parts", 1, words + " training.steps=10 --resume").exit_code,
              0);
    EXPECT_TRUE(bits_of(task + "_parts", 10) == first) << task << ": after a change of ranks";
  }

  inline static TemporaryFolder* folder_ = nullptr;
};

TEST_F(AnyRanks, GiveTranslationsTheSameBits) {
  ASSERT_EQ(make_tiny_corpus(folder()), "");
  write_tiny_config(folder());
  const std::string config = (folder() / "tiny.toml").string();
  for (const char* precision : {"fp32", "bf16", "fp16"}) {
    expect_equal(fmt::format("translation_{}_", precision), config,
                 fmt::format("run.precision={}", precision));
  }
  const ProgramResult three = train(config, "three", 3, "training.steps=2");
  EXPECT_EQ(three.exit_code, 2);
  EXPECT_NE(three.errors.find("training.virtual_shards = 4: 3 ranks cannot divide them"),
            std::string::npos)
      << three.errors;
  const ProgramResult hooked =
      train(config, "hooked", 2, "comm.hook=bf16 training.virtual_shards=6");
  EXPECT_EQ(hooked.exit_code, 2);
  for (const char* key : {"comm.hook", "training.virtual_shards"}) {
    EXPECT_NE(hooked.errors.find(key), std::string::npos) << hooked.errors;
  }
}

TEST_F(AnyRanks, GiveTextsTheSameBits) {
  const fs::path texts = folder() / "texts";
  fs::create_directories(texts);
  write_tiny_bert(texts, 1);
  ASSERT_EQ(prepare_tiny_texts(texts), "");
  write_tiny_text_config(texts);
  expect_equal("texts_", (texts / "tiny.toml").string(), "schedule.num_warmup_steps=30");
}

TEST_F(AnyRanks, GiveImagesTheSameBitsButForBatchNorms) {
  write_tiny_images(folder() / "data");
  const std::string config = (folder() / "images.toml").string();
  write_tiny_image_config(config, folder() / "data");
  expect_equal("vit_", config, "model.name=vit_ti16 model.patch=8 model.stem=imagenet");
  const ProgramResult refused = train(config, "images", 2, "");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.errors.find("running statistics"), std::string::npos) << refused.errors;
}

}  // namespace
}  // namespace lockstep
