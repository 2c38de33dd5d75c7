// Classification of images end to end, on folders of tiny JPEGs.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <regex>

#include "support/event_reader.h"
#include "support/tiny_images.h"

namespace lockstep {
namespace {

using Images = TinyImageRuns;

// Of a run that was started once.
EventFile only_events(const fs::path& run) {
  const fs::directory_iterator files(run / "events");
  return read_event_file(files->path());
}

std::string weights_of(const fs::path& run, int step, const char* file = "weights") {
  return read_file(run / fmt::format("checkpoints/step_{}/{}.safetensors", step, file));
}

double figure(const std::vector<nlohmann::json>& steps, std::size_t step, const char* tag) {
  return steps.at(step - 1).at(tag).get<double>();
}

TEST_F(Images, AreLearnedAndLoggedAsTheImagenetExampleDoes) {
  const ProgramResult trained = train(
      "learn", 1,
      "training.steps=0 training.epochs=12 evaluation.every_epochs=6 training.average_decay=0.5 "
      "batch.images=10 optimizer.lr=0.005");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const auto evaluations = metrics_of(run("learn"), "evaluation");
  ASSERT_EQ(evaluations.size(), 2u);
  EXPECT_EQ(evaluations[0].at("step"), 24);  // 40 images in steps of 10
  EXPECT_GE(evaluations[1].at("eval/acc1").get<double>(), 75) << trained.errors;
  EXPECT_EQ(evaluations[1].at("eval/acc5"), 100);
  for (const char* line :
       {R"(Epoch: \[0\]\[1/4\] Loss \d\.\d{4}e[+-]\d\d \(\d\.\d{4}e[+-]\d\d\) Acc@1 \d+\.\d\d )"
        R"(\(\d+\.\d\d\) Acc@5 100\.00 \(100\.00\))",
        R"( \* Val Acc@1 \d+\.\d{3} Val Acc@5 100\.000)", R"(Training complete in: 0:0\d:\d\d)"}) {
    EXPECT_TRUE(std::regex_search(trained.errors, std::regex(line))) << line << trained.errors;
  }
  std::string events;
  for (const auto& file : fs::directory_iterator(run("learn") / "events")) {
    events += read_file(file.path());
  }
  for (const char* tag :
       {"Loss/train", "Accuracy/train", "Loss/Val", "Accuracy/Val", "train/top5", "eval/acc1"}) {
    EXPECT_NE(events.find(tag), std::string::npos) << tag;
  }
}

TEST_F(Images, AreShownInTensorBoardWithWhatTheyWereTakenFor) {
  const std::string words =
      "training.steps=4 evaluation.every=2 logging.histograms_every=2 'evaluation.samples=4'";
  std::string shown[2];
  for (int ranks : {1, 2}) {
    const std::string name = fmt::format("shown{}", ranks);
    const ProgramResult trained = train(name, ranks, words);
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    const EventFile events = only_events(run(name));
    std::map<std::string, int> images, histograms;
    for (const ImageEvent& image : events.images) ++images[image.tag];
    EXPECT_EQ(images,
              (std::map<std::string, int>{{"eval/sample_images", 2}, {"eval/confusion", 2}}));
    EXPECT_EQ(events.images.front().width, 2 * (128 + 6 + 4) + 4) << "4 images of 16 pixels";
    for (const HistogramEvent& histogram : events.histograms) {
      ++histograms[histogram.tag];
      EXPECT_EQ(histogram.step % 2, 0);
      EXPECT_GT(histogram.values.count, 0);
    }
    EXPECT_EQ(histograms.at("weights/fc"), 2);
    EXPECT_EQ(histograms.at("gradients/fc"), 2);
    ASSERT_EQ(events.hyper.size(), 3u);
    bool has_rate = false;
    for (const auto& [key, value] : decode_session_start(events.hyper[1].data)) {
      has_rate = has_rate || (key == "optimizer.lr" && value == HyperValue(0.02));
    }
    EXPECT_TRUE(has_rate);
    for (const TextEvent& text : events.texts) {
      if (text.tag == "eval/samples") shown[ranks - 1] = text.markdown;
    }
    for (int label : {0, 1, 2, 3}) {  // spread over the classes
      const std::string row = fmt::format("/c{0}/000.jpeg | c{0} | c", label);
      EXPECT_NE(shown[ranks - 1].find(row), std::string::npos) << shown[ranks - 1];
    }
  }
  const EventFile without = [&] {
    EXPECT_EQ(
        train("plain", 1, "training.steps=1 evaluation.every=1 logging.pictures=false").exit_code,
        0);
    return only_events(run("plain"));
  }();
  EXPECT_TRUE(without.images.empty());
  EXPECT_TRUE(without.histograms.empty()) << "they are asked for";
}

TEST_F(Images, TwoRanksWithSharedStatisticsLearnAsOne) {
  const std::string words = "batch.drop_last=true optimizer.lr=0.001 training.steps=4 ";
  ASSERT_EQ(train("one", 1, words + "model.sync_batch_norm=true").exit_code, 0);
  const ProgramResult two = train("two", 2, words + "model.sync_batch_norm=true");
  ASSERT_EQ(two.exit_code, 0) << two.errors;
  const auto one_steps = metrics_of(run("one"), "step"), two_steps = metrics_of(run("two"), "step");
  ASSERT_EQ(one_steps.size(), 4u);
  ASSERT_EQ(two_steps.size(), 4u);
  for (std::size_t step = 1; step <= 4; ++step) {
    // Sums in another order; gradients, and later steps, amplify their rounding through ReLUs and
    // batch norms, as libtorch's own operations do: two steps later by 5 %.
    for (const char* tag : {"train/loss", "train/gradient_norm"}) {
      const bool is_loss = tag == std::string("train/loss");
      const double tolerance = step > 1 ? 0.05 : is_loss ? 1e-4 : 2e-3;
      const double expected = figure(one_steps, step, tag);
      EXPECT_NEAR(figure(two_steps, step, tag), expected, tolerance * expected)
          << tag << " of step " << step;
    }
  }
  const ProgramResult own = train("own", 2, words);
  ASSERT_EQ(own.exit_code, 0) << own.errors;
  EXPECT_GT(std::abs(figure(metrics_of(run("own"), "step"), 1, "train/loss") -
                     figure(two_steps, 1, "train/loss")),
            1e-3)
      << "statistics of each rank's own images are others";
}

TEST_F(Images, ALastStepOfFewImagesLeavesNoRankOut) {
  // 40 images in steps of 13 leave one: too few for two ranks that share statistics.
  const std::string words = "batch.images=13 training.steps=0 training.epochs=2";
  const ProgramResult synced = train("few", 2, words + " model.sync_batch_norm=true");
  ASSERT_EQ(synced.exit_code, 0) << synced.errors;
  EXPECT_EQ(metrics_of(run("few"), "step").size(), 6u);
}

TEST_F(Images, AResumedRunIsTheSameBitForBit) {
  const std::string words =
      "training.average_decay=0.9 evaluation.every=4 checkpoint.every=5 "
      "checkpoint.keep=9 images.mixup=0.2";
  const ProgramResult whole = train("whole", 2, words);
  ASSERT_EQ(whole.exit_code, 0) << whole.errors;
  ASSERT_EQ(train("parts", 2, words + " training.steps=5").exit_code, 0);
  const ProgramResult resumed = train("parts", 2, words + " --resume");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_TRUE(weights_of(run("whole"), 8) == weights_of(run("parts"), 8));
  EXPECT_TRUE(weights_of(run("whole"), 8, "average") == weights_of(run("parts"), 8, "average"));
  EXPECT_TRUE(weights_of(run("whole"), 8, "rank_1") == weights_of(run("parts"), 8, "rank_1"))
      << "each rank's own statistics";
  EXPECT_EQ(metrics_of(run("whole"), "evaluation").back().at("eval/loss"),
            metrics_of(run("parts"), "evaluation").back().at("eval/loss"));
}

TEST_F(Images, AnEvaluationHasTheSameDigitsForAnyNumberOfRanks) {
  ASSERT_EQ(train("digits", 1).exit_code, 0);
  const std::string words = fmt::format("evaluate {} --by-class --confusion {}/c.svg",
                                        run("digits").string(), folder_->path().string());
  const ProgramResult one = run_lockstep(words, "OMP_NUM_THREADS=1");
  ASSERT_EQ(one.exit_code, 0) << one.errors;
  EXPECT_NE(one.output.find("val  Acc@1 "), std::string::npos) << one.output;
  EXPECT_NE(one.output.find("c3 "), std::string::npos) << one.output;
  const std::string picture = read_file(folder_->path() / "c.svg");
  for (int ranks : {2, 3}) {
    const ProgramResult more =
        run_lockstep(fmt::format("launch -n {} -- {}", ranks, words), "OMP_NUM_THREADS=1");
    ASSERT_EQ(more.exit_code, 0) << more.errors;
    EXPECT_EQ(read_file(folder_->path() / "c.svg"), picture) << ranks << " ranks";
  }
}

TEST_F(Images, GrowInTrainingAndAreEvaluatedLarger) {
  const ProgramResult trained =
      train("sizes", 1,
            "resolution.start=8 resolution.start_epoch=0 resolution.end_epoch=2 "
            "resolution.multiple=4 resolution.evaluation=20 training.steps=0 training.epochs=3 "
            "evaluation.every_epochs=3");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_EQ(metrics_of(run("sizes"), "evaluation").size(), 1u);
}

TEST_F(Images, AreClassifiedByName) {
  ASSERT_EQ(train("use", 1, "training.steps=48 batch.images=10 optimizer.lr=0.005").exit_code, 0);
  const std::string file = (data() / "val/c2/000.jpeg").string();
  const ProgramResult text = run_lockstep(fmt::format("classify {} {}", run("use").string(), file));
  ASSERT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_TRUE(
      std::regex_match(text.output, std::regex(R"(\S+000\.jpeg\n( +\d+\.\d{3} %  c\d\n){4})")))
      << text.output;

  const ProgramResult none =
      run_lockstep(fmt::format("classify {} none.jpeg", run("use").string()));
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_NE(none.errors.find("none.jpeg: there is no such file"), std::string::npos) << none.errors;

  const fs::path bad = folder_->path() / "odd.jpeg";
  write_file(bad, "no image");
  const fs::path hidden = data() / "val" / ".cache";
  fs::create_directory(hidden);
  write_file(hidden / "thumbnail.jpeg", "no image either");
  const ProgramResult json =
      run_lockstep(fmt::format("classify {} {} {} --json --top 2", run("use").string(),
                               (data() / "val").string(), bad.string()));
  fs::remove_all(hidden);
  EXPECT_EQ(json.exit_code, 3);
  EXPECT_NE(json.errors.find("1 of 13 files cannot be decoded"), std::string::npos) << json.errors;
  EXPECT_NE(json.errors.find("odd.jpeg"), std::string::npos) << json.errors;
  int lines = 0, right = 0;
  std::istringstream stream(json.output);
  for (std::string line; std::getline(stream, line); ++lines) {
    const nlohmann::json found = nlohmann::json::parse(line);
    if (found.contains("error")) continue;
    ASSERT_EQ(found.at("classes").size(), 2u);
    const std::string name = found.at("classes")[0].at("name");
    right += found.at("file").get<std::string>().find("/" + name + "/") != std::string::npos;
  }
  EXPECT_EQ(lines, 13);
  EXPECT_GE(right, 9) << json.output;
}

TEST_F(Images, OverflowsAreToldInApexsWords) {
  const ProgramResult trained =
      train("apex", 1,
            "run.precision=fp16 loss_scale.name=apex loss_scale.initial=16777216 "
            "training.steps=3");
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  EXPECT_NE(trained.errors.find("Gradient overflow.  Skipping step, loss scaler 0 reducing loss "
                                "scale to 8388608.0\n"),
            std::string::npos)
      << trained.errors;
}

// Data with something wrong, and what is said of it.
class BadImages : public TinyImageRuns {
 protected:
  ProgramResult train_on(const fs::path& data, int ranks, const std::string& words = "") const {
    return train("bad" + std::to_string(count_++), ranks,
                 fmt::format("images.data={} {}", data.string(), words));
  }
  fs::path fresh() const {
    fs::path folder = folder_->path() / fmt::format("data{}", count_++);
    write_tiny_images(folder, {.classes = 3, .train = 4, .val = 1});
    return folder;
  }
  inline static int count_ = 0;
};

void expect_error(const ProgramResult& result, int code, const std::vector<std::string>& parts) {
  EXPECT_EQ(result.exit_code, code) << result.errors;
  for (const std::string& part : parts) {
    EXPECT_NE(result.errors.find(part), std::string::npos) << part << "\n" << result.errors;
  }
}

TEST_F(BadImages, AnEmptyClassIsNamed) {
  const fs::path data = fresh();
  fs::create_directories(data / "train/nothing");
  expect_error(train_on(data, 1), 3, {"nothing"});
}

TEST_F(BadImages, AClassThatValidationLacksIsNamedBeforeTraining) {
  const fs::path data = fresh();
  fs::remove_all(data / "val/c1");
  expect_error(train_on(data, 1, "evaluation.every=4"), 3, {"c1"});
  EXPECT_EQ(train_on(data, 1).exit_code, 0) << "without evaluations it plays no part";
}

TEST_F(BadImages, MoreRanksThanImagesOfAStep) {
  expect_error(train_on(fresh(), 2, "batch.images=1"), 2,
               {"batch.images: 1 image a step are too few for 2 ranks"});
  expect_error(train_on(fresh(), 1, "batch.images=50 batch.drop_last=true"), 2,
               {"the split train has 12 images"});
}

TEST_F(BadImages, ABrokenFileIsNamedOrLeftOut) {
  const fs::path data = fresh();
  write_file(data / "train/c1/001.jpeg", read_file(data / "train/c1/001.jpeg").substr(0, 60));
  write_file(data / "val/c2/000.jpeg", "nothing");
  const std::string words =
      "evaluation.every_epochs=1 training.steps=0 training.epochs=1 batch.images=6 ";
  expect_error(train_on(data, 1, words), 3, {"train/c1/001.jpeg"});
  const ProgramResult skipped = train_on(data, 1, words + "images.broken=skip");
  expect_error(skipped, 0, {"train/c1/001.jpeg"});
}

TEST_F(BadImages, AnImageThatIsSmallerThanItsCropIsNamed) {
  const fs::path data = fresh();
  write_class_image(data / "train/c0/000.jpeg", 0, 1, {.width = 9, .height = 7});
  expect_error(train_on(data, 1, "images.augmentation=random_crop images.padding=0"), 2,
               {"an image of 9 x 7 pixels is smaller than the crop of 16", "train/c0/000.jpeg"});
}

TEST_F(BadImages, HostsWithOtherClassesDoNotTrainTogether) {
  const fs::path first = fresh(), second = fresh();
  fs::rename(second / "train/c1", second / "train/other");
  fs::rename(second / "val/c1", second / "val/other");
  const fs::path config = folder_->path() / "relative.toml";
  write_tiny_image_config(config, "here");
  fs::rename(first, folder_->path() / "host0-here");
  fs::create_directories(folder_->path() / "host0");
  fs::create_directories(folder_->path() / "host1");
  fs::rename(folder_->path() / "host0-here", folder_->path() / "host0/here");
  fs::rename(second, folder_->path() / "host1/here");
  // Each rank in a folder of its own, as on its own host.
  const fs::path script = folder_->path() / "rank.sh";
  write_file(script,
             fmt::format("cd {}/host$LOCKSTEP_RANK && exec '{}' train {} run.folder={}/hosts\n",
                         folder_->path().string(), LOCKSTEP_PROGRAM, config.string(),
                         folder_->path().string()));
  const ProgramResult result = run_lockstep(
      fmt::format("launch -n 2 --program sh -- {}", script.string()), "OMP_NUM_THREADS=1");
  expect_error(result, 2,
               {"the data of rank 1", "is not that of rank 0", "class 1 = c2", "class 1 = c1"});
}

TEST_F(BadImages, WeightsOfAnotherDepthAreRefused) {
  const ProgramResult shallow = train("shallow", 1, "training.steps=2");
  ASSERT_EQ(shallow.exit_code, 0) << shallow.errors;
  expect_error(
      run_lockstep(fmt::format("evaluate {} model.name=resnet34", run("shallow").string())), 3,
      {"layer1.2.conv1.weight"});
  expect_error(train("deep", 1,
                     fmt::format("model.name=resnet34 run.load_model={}", run("shallow").string())),
               3, {"layer1.2"});
}

}  // namespace
}  // namespace lockstep
