// The loader: what an image becomes depends on (seed, epoch, index, size) alone.
#include "batches/image_loader.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <numeric>

#include "support/expect_error.h"
#include "support/image_files.h"

namespace lockstep {
namespace {

class ImageLoaders : public ::testing::Test {
 protected:
  void SetUp() override {
    write_tree(folder_.path());
    config_.data = folder_.path().string();
    config_.size = 32;
    config_.eval_resize = 36;
    set_ = open_image_set(folder_.path(), "train");
    all_.resize(static_cast<std::size_t>(set_->size()));
    std::iota(all_.begin(), all_.end(), int64_t{0});
  }

  ImageTensors train(int64_t threads, std::span<const int64_t> indices, int64_t epoch = 3,
                     uint64_t seed = 1) const {
    ImageLoader loader(*set_, config_, {.seed = seed, .threads = threads});
    return loader.train_batch(indices, epoch, 32);
  }

  TemporaryFolder folder_;
  ImagesConfig config_;
  std::unique_ptr<ImageSet> set_;
  std::vector<int64_t> all_;
};

void turn_everything_on(ImagesConfig& config) {
  config.brightness = config.contrast = config.saturation = 0.4;
  config.hue = 0.1;
  config.randaugment_operations = 2;
  config.erasing = 0.5;
  config.mixup = 0.2;
  config.cutmix = 1;
}

TEST_F(ImageLoaders, GiveTheSameForAnyThreadsAndBatches) {
  for (bool everything : {false, true}) {
    if (everything) turn_everything_on(config_);
    ImageTensors whole = train(1, all_);
    ImageTensors threads = train(3, all_);
    EXPECT_TRUE(torch::equal(whole.images, threads.images));
    EXPECT_TRUE(whole.images.is_contiguous(torch::MemoryFormat::ChannelsLast));
    ImageLoader loader(*set_, config_, {.seed = 1, .threads = 2});
    for (std::size_t i = 0; i < all_.size(); i += 4) {  // every fourth, as a rank of four sees them
      int64_t index = all_[i];
      ImageTensors one = loader.train_batch({&index, 1}, 3, 32);
      EXPECT_TRUE(torch::equal(one.images[0], whole.images[index]));
      EXPECT_EQ(one.labels.item<int64_t>(), set_->label(index));
      if (everything) {
        EXPECT_EQ(one.other_labels.item<int64_t>(), whole.other_labels[index].item<int64_t>());
        EXPECT_EQ(one.weights.item<float>(), whole.weights[index].item<float>());
      }
    }
  }
}

TEST_F(ImageLoaders, ChangeWithEpochAndSeed) {
  ImageTensors first = train(1, all_, 0), second = train(1, all_, 1), other = train(1, all_, 0, 2);
  EXPECT_FALSE(torch::equal(first.images, second.images));
  EXPECT_FALSE(torch::equal(first.images, other.images));
  EXPECT_TRUE(torch::equal(first.images, train(2, all_, 0).images));
}

TEST_F(ImageLoaders, NormaliseIntoTheTypeAskedFor) {
  ImageLoader fp32(*set_, config_, {.compute = at::kFloat});
  ImageTensors wanted = fp32.eval_batch(all_, 32);
  // Pixels are whole numbers once scale and mean are undone.
  torch::Tensor mean = torch::tensor({0.485, 0.456, 0.406}).view({1, 3, 1, 1});
  torch::Tensor deviation = torch::tensor({0.229, 0.224, 0.225}).view({1, 3, 1, 1});
  torch::Tensor pixels = (wanted.images * deviation + mean) * 255;
  EXPECT_LT((pixels - pixels.round()).abs().max().item<double>(), 1e-3);  // of fp32 arithmetic
  EXPECT_GE(pixels.min().item<double>(), -1e-3);
  for (auto type : {at::kBFloat16, at::kHalf}) {
    ImageLoader loader(*set_, config_, {.compute = type});
    ImageTensors got = loader.eval_batch(all_, 32);
    EXPECT_EQ(got.images.scalar_type(), type);
    EXPECT_TRUE(torch::equal(got.images, wanted.images.to(type)));
  }
}

TEST_F(ImageLoaders, EvaluateWithoutChance) {
  ImageLoader loader(*set_, config_, {.seed = 5});
  ImageTensors a = loader.eval_batch(all_, 32);
  std::vector<std::byte> space;
  torch::Tensor one = evaluation_image(set_->bytes(7, space), "x", config_, 32, at::kFloat);
  EXPECT_TRUE(torch::equal(one[0], a.images[7]));
  EXPECT_EQ(loader.eval_batch(all_, 64).images.size(2), 64);
}

TEST_F(ImageLoaders, MixWithPartnersOfTheWholeSet) {
  config_.mixup = 0.8;
  config_.flip = 0;
  config_.augmentation = "none";
  ImageLoader mixed(*set_, config_, {.seed = 1});
  ImagesConfig plain_config = config_;
  plain_config.mixup = 0;
  ImageLoader plain(*set_, plain_config, {.seed = 1});
  ImageTensors whole = plain.eval_batch(all_, 32);
  ImageTensors got = mixed.train_batch(all_, 0, 32);
  ASSERT_TRUE(got.weights.defined());
  int64_t explained = 0;
  for (int64_t i = 0; i < set_->size(); ++i) {
    float weight = got.weights[i].item<float>();
    EXPECT_GE(weight, 0);
    EXPECT_LE(weight, 1);
    for (int64_t j = 0; j < set_->size(); ++j) {  // some image of the other label is the partner
      if (set_->label(j) != got.other_labels[i].item<int64_t>()) continue;
      torch::Tensor wanted = weight * whole.images[i] + (1 - weight) * whole.images[j];
      explained += torch::allclose(got.images[i], wanted, 1e-4, 1e-4);
    }
  }
  EXPECT_GE(explained, set_->size());
}

TEST_F(ImageLoaders, CutMixWeighsByArea) {
  config_.cutmix = 1;
  config_.augmentation = "none";
  ImageLoader mixed(*set_, config_, {.seed = 1});
  ImageTensors own = mixed.eval_batch(all_, 32), got = mixed.train_batch(all_, 0, 32);
  for (int64_t i = 0; i < set_->size(); ++i) {
    torch::Tensor same = (own.images[i] == got.images[i]).all(0);
    double share = same.to(torch::kFloat).mean().item<double>();
    // Pixels of the partner may be equal by chance, never the other way round.
    EXPECT_GE(share + 1e-6, got.weights[i].item<float>());
  }
}

TEST_F(ImageLoaders, MirrorHalfOfTheImages) {
  config_.crop_area = 1;
  config_.crop_ratio = 1;  // never fits a picture that is not square: its centre
  ImageLoader loader(*set_, config_, {.seed = 1});
  ImagesConfig unflipped = config_;
  unflipped.flip = 0;
  ImageLoader straight(*set_, unflipped, {.seed = 1});
  int mirrored = 0, equal = 0;
  for (int64_t epoch = 0; epoch < 10; ++epoch) {
    ImageTensors a = loader.train_batch(all_, epoch, 32), b = straight.train_batch(all_, epoch, 32);
    for (int64_t i = 0; i < set_->size(); ++i) {
      mirrored += torch::equal(a.images[i].flip(2), b.images[i]);
      equal += torch::equal(a.images[i], b.images[i]);
    }
  }
  EXPECT_EQ(mirrored + equal, 150);
  EXPECT_NEAR(mirrored, 75, 25);  // four standard deviations of a fair coin
}

TEST_F(ImageLoaders, CutPaddedImages) {
  config_.augmentation = "random_crop";
  config_.padding = 4;
  config_.flip = 0;
  config_.size = 40;
  config_.eval_resize = 0;
  set_ = open_image_set(folder_.path(), "train");
  ImageLoader loader(*set_, config_, {.seed = 1});
  torch::Tensor whole = loader.train_batch(all_, 0, 40).images;
  ASSERT_EQ(whole.size(3), 40);
  torch::Tensor smaller = loader.train_batch(all_, 0, 20).images;  // the same pieces, shrunk
  ASSERT_EQ(smaller.size(3), 20);
  EXPECT_LT((torch::avg_pool2d(whole, 2) - smaller).abs().mean().item<double>(), 0.1);
  config_.size = 128;
  ImageLoader larger(*set_, config_, {.seed = 1});
  EXPECT_ERROR(larger.train_batch(all_, 0, 128), ConfigError, "smaller than the crop of 128");
}

TEST_F(ImageLoaders, SkipBrokenImagesOrNameThem) {
  std::vector<std::byte> file = jpeg_file(60, 60, 1);
  write_bytes(folder_.path() / "train/class1/img2.JPEG", std::span(file).first(300));
  EXPECT_ERROR(train(2, all_), DataError, "train/class1/img2.JPEG");
  config_.broken = "skip";
  ImageTensors whole = train(2, all_);
  EXPECT_EQ(whole.broken, 1);
  EXPECT_EQ(whole.images.size(0), 14);
  EXPECT_EQ(whole.labels.size(0), 14);
  EXPECT_EQ(whole.indices[7].item<int64_t>(), 8);
  EXPECT_TRUE(whole.images.is_contiguous(torch::MemoryFormat::ChannelsLast));
  int64_t index = 8;
  EXPECT_TRUE(torch::equal(train(1, {&index, 1}).images[0], whole.images[7]));
}

TEST_F(ImageLoaders, CheckTheirConfiguration) {
  config_.eval_resize = 16;
  EXPECT_ERROR(ImageLoader(*set_, config_, {}), ConfigError, "images.eval_resize: 16");
  config_.eval_resize = 36;
  config_.mean = {0.5};
  EXPECT_ERROR(ImageLoader(*set_, config_, {}), ConfigError, "expected 3 numbers each");
}

}  // namespace
}  // namespace lockstep
