#include "tasks/image_classification.h"

#include <gtest/gtest.h>

#include <set>

#include "config/source.h"
#include "metrics/classification_scores.h"
#include "support/tiny_images.h"

namespace lockstep {
namespace {

// The task on 4 x 10 tiny images, as a run of one rank opens it.
struct Opened {
  ImageClassification task;
  explicit Opened(const fs::path& data, const std::vector<std::string>& words = {}) {
    ConfigSource source = ConfigSource::from_text("", "test");
    std::vector<std::string> all = {
        "images.data=" + data.string(), "images.size=8",    "images.eval_resize=8",
        "model.name=resnet18",          "model.stem=cifar", "batch.images=12"};
    all.insert(all.end(), words.begin(), words.end());
    for (const std::string& word : all) source.override_with(word);
    source.read("", task);
    source.finish();
    task.open({.seed = 3});
  }
  // The images of an epoch's step, over all parts.
  std::vector<int64_t> images(int64_t epoch, int64_t step, int64_t parts) {
    std::vector<int64_t> out;
    for (int64_t part = 0; part < parts; ++part) {
      const auto batch = task.make_batch({epoch, step, part, StepParts(equal_shares(1, parts))});
      if (batch == nullptr) continue;
      const torch::Tensor& indices = static_cast<ImageBatch&>(*batch).tensors.indices;
      EXPECT_EQ(batch->targets, indices.numel());
      for (int64_t i = 0; i < indices.numel(); ++i) out.push_back(indices[i].item<int64_t>());
    }
    return out;
  }
};

class ImageClassificationTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    data_ = new TemporaryFolder();
    write_tiny_images(data_->path());
  }
  static void TearDownTestSuite() { delete data_; }
  inline static TemporaryFolder* data_ = nullptr;
};

TEST_F(ImageClassificationTest, EveryImageComesOnceAnEpochInAnOrderOfItsOwn) {
  Opened opened(data_->path());
  ASSERT_EQ(opened.task.steps_in_epoch(0), 4);
  std::vector<int64_t> epochs[2];
  for (int64_t epoch : {0, 1}) {
    for (int64_t step = 0; step < 4; ++step) {
      const std::vector<int64_t> images = opened.images(epoch, step, 1);
      EXPECT_EQ(std::ssize(images), opened.task.targets_in_step(epoch, step));
      EXPECT_EQ(images, opened.images(epoch, step, 3)) << "parts follow each other";
      epochs[epoch].insert(epochs[epoch].end(), images.begin(), images.end());
    }
    EXPECT_EQ(std::set<int64_t>(epochs[epoch].begin(), epochs[epoch].end()).size(), 40u);
    EXPECT_EQ(epochs[epoch].size(), 40u);
  }
  EXPECT_NE(epochs[0], epochs[1]);
}

TEST_F(ImageClassificationTest, AnEvaluationShowsImagesOfAllClassesAsTheyAreSeen) {
  Opened opened(data_->path());
  World world({}, {});
  EXPECT_EQ(opened.task.train_items(), 40);
  EXPECT_EQ(opened.task.items_of("val"), 12);
  EXPECT_EQ(opened.task.items_per_step(), 12);
  const Evaluation result = opened.task.evaluate(
      world, {.split = "val", .samples = 4, .confusion = true, .pictures = true});
  ASSERT_EQ(result.samples.size(), 4u);
  for (int k = 0; k < 4; ++k) {
    const Sample& sample = result.samples[static_cast<std::size_t>(k)];
    EXPECT_EQ(sample.reference, fmt::format("c{}", k));
    EXPECT_NE(sample.source.find(fmt::format("c{}/000.jpeg", k)), std::string::npos);
    ASSERT_NE(sample.picture, nullptr);
    EXPECT_EQ(sample.picture->width, 8);
    const uint8_t* top = sample.picture->at(4, 1);
    if (k == 0) {
      EXPECT_GT(top[0], top[1] + 60) << "class 0 is red above";
    }
    if (k == 2) {
      EXPECT_GT(top[2], top[1] + 60) << "class 2 is blue above";
    }
    EXPECT_TRUE(sample.output.starts_with("c")) << "a class's name";
  }
  ASSERT_TRUE(result.confusion);
  // Precision, recall and F1 are those of the matrix, which others do without.
  const ClassificationScores scores = classification_scores(*result.confusion, 0);
  const Evaluation plain = opened.task.evaluate(world, {.split = "val"});
  EXPECT_FALSE(plain.confusion);
  for (const auto& metrics : {result.metrics, plain.metrics}) {
    EXPECT_EQ(metrics.at("precision"), scores.macro.precision);
    EXPECT_EQ(metrics.at("recall"), scores.macro.recall);
    EXPECT_EQ(metrics.at("f1_weighted"), scores.weighted.f1);
    EXPECT_DOUBLE_EQ(100 * metrics.at("f1_micro"), metrics.at("acc1"));
  }
  EXPECT_EQ(opened.task.evaluate(world, {.split = "val", .samples = 2}).samples[1].picture, nullptr)
      << "only when they are asked for";
  EXPECT_TRUE(opened.task.evaluate(world, {.split = "val"}).samples.empty());
}

TEST_F(ImageClassificationTest, APartialLastStepCanBeLeftOut) {
  Opened opened(data_->path(), {"batch.drop_last=true"});
  EXPECT_EQ(opened.task.steps_in_epoch(0), 3);
}

TEST_F(ImageClassificationTest, MorePartsThanImagesLeaveSomeEmpty) {
  Opened opened(data_->path(), {"batch.images=3"});
  int64_t images = 0;
  for (int64_t part = 0; part < 5; ++part) {
    const auto batch = opened.task.make_batch({0, 0, part, StepParts(equal_shares(1, 5))});
    if (batch) images += batch->items;
  }
  EXPECT_EQ(images, 3);
}

TEST(ResolutionConfig, GrowsAsFfcvsRecipe) {
  // rn50_16_epochs.yaml: 160 to 192 pixels, start_ramp 11, end_ramp 13.
  const ResolutionConfig r{.start = 160, .start_epoch = 11, .end_epoch = 13, .multiple = 32};
  EXPECT_EQ(r.training_size(0, 192), 160);
  EXPECT_EQ(r.training_size(11, 192), 160);
  EXPECT_EQ(r.training_size(12, 192), 192);  // 176 / 32 = 5.5 is rounded to even
  EXPECT_EQ(r.training_size(13, 192), 192);
  const ResolutionConfig slow{.start = 96, .start_epoch = 2, .end_epoch = 10, .multiple = 32};
  EXPECT_EQ(slow.training_size(6, 224), 160);
  EXPECT_EQ(ResolutionConfig{}.training_size(0, 224), 224);
}

}  // namespace
}  // namespace lockstep
