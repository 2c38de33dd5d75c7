// Our pixels against Pillow's: decoding of whole images and of regions, antialiased resizing,
// evaluation's transform, and each operation of RandAugment.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "data/fetch/archive_entries.h"
#include "data/images/image_augmentation.h"
#include "data/images/image_decoder.h"
#include "data/images/image_pipeline.h"
#include "data/images/image_resize.h"
#include "support/python.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

struct Difference {
  double mean = 0;
  int largest = 0;
};

class ImagePixels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!python_has("PIL") || !python_has("numpy")) {
      GTEST_SKIP() << "needs Pillow: pip install -r requirements-test.txt";
    }
  }

  fs::path path(const std::string& name) const { return folder_.path() / name; }

  // Images of many kinds that Pillow writes.
  std::vector<fs::path> made_images() {
    fs::path images = path("made");
    fs::create_directories(images);
    PythonResult result = run_parity_script("image_pixels.py", "make " + images.string());
    EXPECT_EQ(result.status, 0) << result.errors;
    return files_of(images);
  }

  // Photos, if the shared data are there.
  std::vector<fs::path> photos(const std::string& set, std::size_t most) {
    fs::path archive = fs::path(LOCKSTEP_SHARED) / "data" / set / "images.tar";
    if (!fs::exists(archive)) return {};
    fs::path images = path(set);
    fs::create_directories(images);
    ArchiveEntries entries(archive);
    for (std::size_t i = 0; i < most; ++i) {
      std::optional<std::string> entry = entries.next();
      if (!entry) break;
      std::vector<std::byte> bytes = entries.read();
      write_file(images / fs::path(*entry).filename(),
                 {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    return files_of(images);
  }

  void add_case(Json what, const std::vector<uint8_t>& pixels) {
    std::string raw = path(std::to_string(cases_.size()) + ".rgb").string();
    write_file(raw, {reinterpret_cast<const char*>(pixels.data()), pixels.size()});
    what["raw"] = raw;
    cases_.push_back(std::move(what));
  }

  std::vector<Difference> differences() {
    std::string lines;
    for (const Json& one : cases_) lines += one.dump() + "\n";
    write_file(path("cases"), lines);
    PythonResult result = run_parity_script("image_pixels.py", "check " + path("cases").string());
    EXPECT_EQ(result.status, 0) << result.errors;
    std::vector<Difference> out;
    std::istringstream text(result.output);
    for (std::string line; std::getline(text, line);) {
      Json json = Json::parse(line);
      out.push_back({json["mean"], json["largest"]});
    }
    EXPECT_EQ(out.size(), cases_.size());
    return out;
  }

  static std::vector<fs::path> files_of(const fs::path& folder) {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder)) out.push_back(entry.path());
    std::sort(out.begin(), out.end());
    return out;
  }

  static std::vector<std::byte> bytes_of(const fs::path& file) {
    std::string text = read_file(file);
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
  }

  TemporaryFolder folder_;
  std::vector<Json> cases_;
};

// One grey level for JPEGs: Pillow brings its own version of libjpeg, whose roundings may differ
// (with Pillow 13 and libjpeg-turbo 2.1 they do not). Resizing is exact.
constexpr int kDecoderTolerance = 1;

TEST_F(ImagePixels, OfEvaluationArePillows) {
  std::vector<fs::path> files = made_images();
  for (const char* set : {"imagenet-samples60", "flowers-original60"}) {
    for (const fs::path& file : photos(set, 60)) files.push_back(file);
  }
  for (const fs::path& file : files) {
    for (const char* filter : {"bilinear", "bicubic"}) {
      ImagesConfig config;
      config.interpolation = filter;
      ImagePipeline pipeline(config);
      std::vector<std::byte> bytes = bytes_of(file);
      std::vector<uint8_t> pixels(3 * 224 * 224);
      pipeline.evaluation(bytes, 256, 224, pixels.data());
      add_case({{"file", file.string()},
                {"transform", "evaluation"},
                {"resize", 256},
                {"size", 224},
                {"filter", filter}},
               pixels);
    }
  }
  std::vector<Difference> found = differences();
  double sum = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    bool png = cases_[i]["file"].get<std::string>().find("png") != std::string::npos;
    EXPECT_LE(found[i].largest, png ? 0 : kDecoderTolerance) << cases_[i];
    sum += found[i].mean;
  }
  double mean = sum / static_cast<double>(found.size());
  RecordProperty("images", static_cast<int>(files.size()));
  RecordProperty("mean_difference", std::to_string(mean));
  EXPECT_LT(mean, 0.05);
}

// The region alone is decoded, at the borders of blocks and within them.
TEST_F(ImagePixels, OfCropsArePillows) {
  ImageDecoder decoder;
  ImageResizer resizer;
  KeyedRandom random(1);
  for (const fs::path& file : made_images()) {
    std::vector<std::byte> bytes = bytes_of(file);
    for (int i = 0; i < 8; ++i) {
      ImageInfo info = decoder.open(bytes);
      PixelBox box;
      box.width = 1 + random.below(info.width);
      box.height = 1 + random.below(info.height);
      box.x = random.below(info.width - box.width + 1);
      box.y = random.below(info.height - box.height + 1);
      bool mirror = random.chance(0.5), cubic = random.chance(0.5);
      ResizeFilter filter = cubic ? ResizeFilter::kBicubic : ResizeFilter::kBilinear;
      auto plan = [&](ResizeAxis& axis, int64_t begin, int64_t length) {
        axis.plan({static_cast<double>(begin), static_cast<double>(begin + length), 96, 0, 96},
                  begin, begin + length, filter);
      };
      plan(resizer.x, box.x, box.width);
      plan(resizer.y, box.y, box.height);
      std::vector<uint8_t> pixels(3 * 96 * 96);
      resizer.resize(decoder.decode(box), mirror, pixels.data(), 3 * 96);
      add_case({{"file", file.string()},
                {"transform", "crop"},
                {"box", {box.x, box.y, box.width, box.height}},
                {"size", 96},
                {"mirror", mirror},
                {"filter", cubic ? "bicubic" : "bilinear"}},
               pixels);
    }
  }
  std::vector<Difference> found = differences();
  for (std::size_t i = 0; i < found.size(); ++i) {
    bool png = cases_[i]["file"].get<std::string>().find("png") != std::string::npos;
    EXPECT_LE(found[i].largest, png ? 0 : kDecoderTolerance) << cases_[i];
  }
}

TEST_F(ImagePixels, OfOperationsArePillows) {
  std::vector<uint8_t> space;
  std::vector<fs::path> files = made_images();
  auto colour = std::find_if(files.begin(), files.end(),
                             [](const fs::path& p) { return p.filename() == "colour.png"; });
  ASSERT_NE(colour, files.end());
  std::vector<std::byte> bytes = bytes_of(*colour);
  ImagesConfig config;
  ImagePipeline pipeline(config);
  std::vector<uint8_t> start(3 * 128 * 128);
  pipeline.evaluation(bytes, 140, 128, start.data());
  Json base{{"file", colour->string()},
            {"transform", "evaluation"},
            {"resize", 140},
            {"size", 128},
            {"filter", "bilinear"}};
  for (int64_t operation = 0; operation < kAugmentOperations; ++operation) {
    for (int64_t magnitude : {0, 9, 17, 30}) {
      for (double sign : {-1.0, 1.0}) {
        std::vector<uint8_t> pixels = start;
        apply_operation({pixels.data(), 128, 128}, operation, magnitude, sign, space);
        Json one = base;
        one.update({{"operation", operation}, {"magnitude", magnitude}, {"sign", sign}});
        add_case(one, pixels);
      }
    }
  }
  for (double share : {-0.5, -0.1, 0.05, 0.4}) {
    std::vector<uint8_t> pixels = start;
    adjust_hue({pixels.data(), 128, 128}, share);
    Json one = base;
    one["hue"] = share;
    add_case(one, pixels);
  }
  std::vector<Difference> found = differences();
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].largest, 0) << cases_[i];
}

}  // namespace
}  // namespace lockstep
