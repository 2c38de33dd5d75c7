#include "recipe/images_rules.h"

#include <gtest/gtest.h>

#include "data/images/images_config.h"
#include "support/expect_error.h"
#include "support/expect_says.h"
#include "support/machines.h"
#include "support/tiny_images.h"
#include "tasks/image_classification.h"
#include "train/config/run_config.h"

namespace lockstep {
namespace {

ImagesFacts images(int64_t train, int64_t side, bool one_size) {
  ImagesFacts out;
  out.classes = {"cat", "dog", "frog"};
  out.train = train;
  out.val = train / 10;
  out.smallest_class = out.largest_class = train / 3;
  out.sampled = 400;
  out.shorter_side = out.smallest_side = side;
  out.one_size = one_size;
  out.mean = {0.5, 0.45, 0.4};
  out.deviation = {0.25, 0.25, 0.25};
  return out;
}

const RunNames kImagesRun{"c.toml", "data/c", "runs/c"};

TEST(ImagesRules, Cifar10IsItsRecipeWhenThereIsTime) {
  const ImagesFacts facts = images(50'000, 32, true);
  const Recipe recipe = images_recipe(facts, measured_machine(), {75}, kImagesRun);
  EXPECT_EQ(recipe.get<std::string>("model.name"), "resnet18");
  EXPECT_EQ(recipe.get<std::string>("model.stem"), "cifar");
  EXPECT_EQ(recipe.get<int64_t>("model.width"), 32);
  EXPECT_EQ(recipe.get<std::string>("images.augmentation"), "random_crop");
  EXPECT_EQ(recipe.get<int64_t>("images.padding"), 4);
  EXPECT_EQ(recipe.get<int64_t>("batch.images"), 256);
  EXPECT_DOUBLE_EQ(recipe.get<double>("images.erasing"), 0.25);
  EXPECT_DOUBLE_EQ(recipe.get<double>("optimizer.lr"), 0.2);
  EXPECT_EQ(recipe.get<int64_t>("training.epochs"), 35);
  EXPECT_EQ(choose_network(facts, measured_machine(), {120}).network.width, 32);
  EXPECT_EQ(choose_network(facts, measured_machine(), {200}).network.width, 64);
}

TEST(ImagesRules, ALargeImageIsSeenSmallWhereTimeIsShort) {
  const ImagesFacts facts = images(3'000, 300, false);
  const ImageNetwork shorter = choose_network(facts, measured_machine(), {2}).network;
  const ImageNetwork longer = choose_network(facts, measured_machine(), {60}).network;
  EXPECT_LT(shorter.size, longer.size);
  EXPECT_EQ(longer.size, 224);
  EXPECT_EQ(longer.stem, "imagenet");
  EXPECT_EQ(choose_kept_side(facts, shorter), shorter.size * 7 / 4);
  EXPECT_EQ(choose_kept_side(images(3'000, 240, false), longer), 0);
}

TEST(ImagesRules, PhotosAreSeenLargerByHalfTheWidthWhereTimeIsShort) {
  const ImagesFacts facts = images(2'934, 128, true);
  auto chosen = [&](double minutes) {
    return choose_network(facts, measured_machine(), {minutes}).network;
  };
  EXPECT_EQ(chosen(2).width, 32);
  EXPECT_EQ(chosen(2).size, 96);
  EXPECT_EQ(chosen(1).size, 64);
  EXPECT_EQ(chosen(15).width, 64);
  EXPECT_EQ(chosen(15).size, 128);
  MachineFacts fp32 = measured_machine();
  fp32.computes_bf16 = false;
  EXPECT_EQ(choose_network(facts, fp32, {2}).network.size, 64);
  EXPECT_EQ(images_recipe(facts, fp32, {2}, kImagesRun).get<int64_t>("model.width"), 32);
}

TEST(ImagesRules, ImageNetOnManyGpusIsResNet50) {
  const ImagesFacts facts = images(1'280'000, 375, false);
  EXPECT_EQ(choose_network(facts, machine_with_gpus(8), {6000}).network.name, "resnet50");
  EXPECT_EQ(choose_network(facts, measured_machine(), {30}).network.name, "resnet18");
}

TEST(ImagesRules, AFewImagesTakeSmallStepsAndManyEpochs) {
  const ImagesFacts facts = images(900, 64, true);
  const NetworkChoice choice = choose_network(facts, measured_machine(), {30});
  const ImagesLength length = choose_images_length(facts, choice.network, measured_machine(), {30});
  EXPECT_LE(length.batch, 64);
  EXPECT_GT(length.epochs, 20);
  EXPECT_LE(length.epochs, 90);
  EXPECT_LE(length.seconds, 30 * 60);
}

TEST(ImagesRules, LessThanThreeEpochsAreCountedInSteps) {
  const ImagesFacts facts = images(50'000, 32, true);
  const ImageNetwork network = choose_network(facts, measured_machine(), {5}).network;
  const ImagesLength length = choose_images_length(facts, network, measured_machine(), {5});
  EXPECT_EQ(length.epochs, 0);
  EXPECT_NEAR(static_cast<double>(length.steps * length.batch), 480 * 300 * 0.85, 512);
}

TEST(ImagesRules, LettersAndDigitsAreNotMirrored) {
  ImagesFacts facts = images(10'000, 28, true);
  EXPECT_TRUE(may_be_mirrored(facts));
  facts.classes = {"0", "1", "7", "B"};
  EXPECT_FALSE(may_be_mirrored(facts));
  const Recipe recipe = images_recipe(facts, measured_machine(), {10}, kImagesRun);
  EXPECT_EQ(recipe.get<double>("images.flip"), 0);
  EXPECT_FALSE(recipe.find("model.average_flips"));
}

TEST(ImagesRules, EveryRecipeReadsAndItsNetworkTakesItsImages) {
  for (const ImagesFacts& facts :
       {images(50'000, 32, true), images(15'000, 64, true), images(3'000, 128, false),
        images(40, 20, false), images(4, 300, false), images(2'000'000, 400, false),
        images(500, 8, true), images(70'000, 28, true)}) {
    for (const MachineFacts& machine :
         {measured_machine(), larger_machine(0.2), larger_machine(40), machine_with_gpus(4)}) {
      for (double minutes : {0.5, 30.0, 3000.0}) {
        const Recipe recipe = images_recipe(facts, machine, {minutes}, kImagesRun);
        SCOPED_TRACE(recipe.to_toml());
        const RunConfig config =
            read_run_config(ConfigSource::from_text(recipe.to_toml(), "made.toml"));
        const auto& c = dynamic_cast<ImageClassification&>(*config.task).config();
        EXPECT_NO_THROW(check_images_config(c.images));
        EXPECT_LE(c.batch.images, facts.train);
        EXPECT_TRUE(config.training.epochs > 0 || config.training.steps > 0);
      }
    }
  }
}

TEST(ImagesCommands, HoldOutAValAndShrinkWhatIsLarge) {
  ImagesFacts facts = images(3'000, 600, false);
  facts.val = 0;
  const ImageNetwork network{"resnet18", "imagenet", 128};
  const auto next = images_commands(facts, network, {"my photos", ""}, kImagesRun);
  ASSERT_EQ(next.size(), 3u);
  EXPECT_EQ(next[0],
            "lockstep prepare images 'my photos' --resize 224 --hold-out 0.1 --out data/c");
  EXPECT_EQ(next[1], "lockstep launch -n auto -- train c.toml");
  facts.prepared = true;
  EXPECT_EQ(images_commands(facts, network, {"data/c", ""}, kImagesRun)[2],
            "lockstep classify runs/c photo.jpeg");
}

TEST(ImagesFactsRead, OfATreeWithAndWithoutSplits) {
  TemporaryFolder folder;
  write_tiny_images(folder.path(), {.classes = 3, .train = 5, .val = 2, .size = {24, 20}});
  ImagesFacts facts = read_images_facts({folder.path(), ""});
  EXPECT_EQ(facts.train, 15);
  EXPECT_EQ(facts.val, 6);
  EXPECT_EQ(facts.classes, (std::vector<std::string>{"c0", "c1", "c2"}));
  EXPECT_EQ(facts.shorter_side, 20);
  EXPECT_FALSE(facts.one_size);
  EXPECT_EQ(facts.sampled, 15);
  EXPECT_FALSE(facts.prepared);
  for (double mean : facts.mean) EXPECT_TRUE(mean > 0.2 && mean < 0.8) << mean;
  facts = read_images_facts({folder.path() / "train", ""});  // class folders alone
  EXPECT_EQ(facts.train, 15);
  EXPECT_EQ(facts.val, 0);
}

TEST(ImagesFactsRead, WhatCannotBeTrainedOnIsAnError) {
  TemporaryFolder folder;
  write_tiny_images(folder.path(), {.classes = 1, .train = 3, .val = 1});
  EXPECT_ERROR(read_images_facts({folder.path(), ""}), DataError, "all images are of one class");
  write_tiny_images(folder.path(), {.classes = 2, .train = 3, .val = 1});
  fs::remove_all(folder.path() / "val/c1");
  EXPECT_ERROR(read_images_facts({folder.path(), ""}), DataError,
               "val: class \"c1\" of train has no images");
  fs::remove_all(folder.path() / "val");
  for (const char* file : {"000.jpeg", "001.jpeg"}) {
    fs::remove(folder.path() / "train/c1" / file);
  }
  EXPECT_ERROR(read_images_facts({folder.path(), ""}), DataError, "has a single image");
}

}  // namespace
}  // namespace lockstep
