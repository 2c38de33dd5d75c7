// The recipes under configs/: that they read, and that they are what they say.
#include <gtest/gtest.h>

#include "tasks/image_classification.h"
#include "tasks/translation.h"
#include "train/config/run_config.h"

namespace lockstep {
namespace {

fs::path recipe(const std::string& name) {
  return fs::path(LOCKSTEP_SOURCE) / "configs/translation" / (name + ".toml");
}

// Weights of the recipe's network over the vocabulary of get_en_de.sh; none is allocated.
int64_t weights(const std::string& name) {
  const RunConfig config = read_run_config(recipe(name), {});
  Parameters parameters;
  Transformer model(dynamic_cast<Translation&>(*config.task).config().model, 32768, parameters);
  return parameters.count();
}

TEST(Recipes, OpenSeq2SeqsTransformerBaseHasAsManyWeightsAsTheirs) {
  EXPECT_EQ(weights("transformer-base-openseq2seq"), 60'880'896);
}

TEST(Recipes, TransformersHaveTheSizesOfThePaper) {
  // Table 3 of Vaswani et al. 2017 has 65 and 213 million, with a vocabulary of 37,000.
  EXPECT_NEAR(static_cast<double>(weights("transformer-base")), 61e6, 1e6);
  EXPECT_NEAR(static_cast<double>(weights("transformer-big")), 210e6, 2e6);
}

TEST(Recipes, AllRead) {
  int read = 0;
  const fs::path configs = fs::path(LOCKSTEP_SOURCE) / "configs";
  for (const auto& entry : fs::recursive_directory_iterator(configs)) {
    const fs::path kind = entry.path().parent_path().filename();
    if (kind == "netlab" || kind == "experiments") continue;  // networks and sweeps, no runs
    if (entry.path().extension() != ".toml") continue;
    SCOPED_TRACE(entry.path().string());
    EXPECT_NO_THROW(read_run_config(entry.path(), {}));
    ++read;
  }
  EXPECT_GE(read, 10);
}

TEST(Recipes, TheFaithfulOneIsOpenSeq2Seqs) {
  const RunConfig config = read_run_config(recipe("transformer-base-openseq2seq"), {});
  const TranslationConfig& c = dynamic_cast<Translation&>(*config.task).config();
  EXPECT_TRUE(c.model.starts_with_zero());
  EXPECT_EQ(c.model.positions, "halves");
  EXPECT_FALSE(c.model.attention_bias);
  EXPECT_TRUE(c.smoothing.over_others && c.smoothing.subtract_entropy);
  EXPECT_EQ(c.batch.sentences, 1024);
  EXPECT_EQ(c.batch.longest, 54);
  EXPECT_FALSE(c.batch.by_length);
  // transformer_policy: 2.0 * 512^-0.5 * min(step * 8000^-1.5, step^-0.5), 9.88e-4 at its peak.
  EXPECT_EQ(config.optimizer_name, "lazy_adam");
  EXPECT_EQ(config.schedule.name, "noam");
}

TEST(Recipes, ImagesHaveNetworksThatExistAndTheReferenceRunsConstants) {
  for (const auto& entry : fs::directory_iterator(fs::path(LOCKSTEP_SOURCE) / "configs/images")) {
    SCOPED_TRACE(entry.path().string());
    const RunConfig config = read_run_config(entry.path(), {});
    const auto& c = dynamic_cast<ImageClassification&>(*config.task).config();
    Parameters parameters;
    EXPECT_NO_THROW(make_image_model(c.model, 10, c.images.size, parameters));
    EXPECT_NO_THROW(check_images_config(c.images));
    EXPECT_EQ(config.evaluation.split, "val");
    EXPECT_EQ(config.evaluation.metrics, std::vector<std::string>{"acc1"});
    EXPECT_EQ(config.log_style(), "imagenet");
  }
  const RunConfig config =
      read_run_config(fs::path(LOCKSTEP_SOURCE) / "configs/images/resnet50-imagenet.toml", {});
  EXPECT_EQ(config.schedule.name, "one_cycle");
  EXPECT_EQ(config.optimizer->lr(), 1.0);
  EXPECT_EQ(config.loss_scale.name, "apex");
  EXPECT_EQ(dynamic_cast<ImageClassification&>(*config.task).config().batch.per_rank.per_rank, 256);
}

}  // namespace
}  // namespace lockstep
