#include "recipe/images_facts.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "data/images/image_decoder.h"
#include "data/images/image_set.h"
#include "data/images/image_source.h"
#include "data/images/images_manifest.h"
#include "data/lines/progress.h"

namespace lockstep {

namespace {

constexpr int64_t kSampled = 400;

using Bytes = std::vector<std::byte>;
using ClassCounts = std::map<std::string, int64_t>;

// Collects sides, colours and pixel sums of the sampled images.
class PixelCounter {
 public:
  void add(std::span<const std::byte> file) {
    try {
      const ImageInfo info = decoder_.open(file);
      const int64_t shorter = std::min(info.width, info.height);
      const DecodedPixels decoded =
          decoder_.decode({0, 0, info.width, info.height}, shorter >= 256   ? 8
                                                           : shorter >= 128 ? 4
                                                                            : 1);
      add_pixels(decoded);
      shorter_.push_back(shorter);
      longer_.push_back(std::max(info.width, info.height));
      grey_ += info.channels <= 2 ? 1 : 0;
    } catch (const DataError&) {
      ++broken_;
    }
  }

  void fill(ImagesFacts& out) {
    out.sampled = std::ssize(shorter_) + broken_;
    out.broken = broken_;
    if (shorter_.empty()) throw DataError("none of {} images can be decoded", out.sampled);
    std::sort(shorter_.begin(), shorter_.end());
    out.smallest_side = shorter_.front();
    out.shorter_side = shorter_[shorter_.size() / 2];
    out.one_size = out.smallest_side == *std::max_element(longer_.begin(), longer_.end());
    out.grey_share = static_cast<double>(grey_) / static_cast<double>(shorter_.size());
    for (std::size_t channel = 0; channel < 3; ++channel) {
      const double mean = sums_[channel] / pixels_;
      out.mean[channel] = mean;
      out.deviation[channel] = std::sqrt(std::max(1e-6, squares_[channel] / pixels_ - mean * mean));
    }
  }

 private:
  void add_pixels(const DecodedPixels& decoded) {
    // Every image has the same weight, whatever its size.
    const double weight = 1.0 / static_cast<double>(decoded.box.width * decoded.box.height);
    for (int64_t y = 0; y < decoded.box.height; ++y) {
      const uint8_t* row = decoded.pixels + y * decoded.stride;
      for (int64_t x = 0; x < 4 * decoded.box.width; x += 4) {
        for (std::size_t channel = 0; channel < 3; ++channel) {
          const double value = row[x + static_cast<int64_t>(channel)] / 255.0;
          sums_[channel] += weight * value;
          squares_[channel] += weight * value * value;
        }
      }
    }
    pixels_ += 1;
  }

  ImageDecoder decoder_;
  std::vector<int64_t> shorter_, longer_;
  int64_t broken_ = 0, grey_ = 0;
  std::array<double, 3> sums_ = {}, squares_ = {};
  double pixels_ = 0;  // number of images, as each has weight 1
};

// Draws a uniform sample from a stream of unknown length (Vitter 1985, algorithm R).
class ImageSample {
 public:
  // Returns where to store the next image, or nothing if it is not kept.
  std::optional<std::size_t> place() {
    const int64_t number = seen_++;
    if (number < kSampled) return static_cast<std::size_t>(number);
    const auto at = static_cast<int64_t>(
        random_below(kSeed, static_cast<uint64_t>(number), static_cast<uint64_t>(number + 1)));
    return at < kSampled ? std::optional(static_cast<std::size_t>(at)) : std::nullopt;
  }

 private:
  static constexpr uint64_t kSeed = 1;
  int64_t seen_ = 0;
};

void check_split_classes(const ClassCounts& train, const ClassCounts& val) {
  if (val.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, count] : train) names.push_back(name);
  for (const auto& [name, count] : val) {
    if (train.contains(name)) continue;
    throw DataError("val: class \"{}\" is not in train{}", name, did_you_mean(name, names));
  }
  for (const std::string& name : names) {
    if (!val.contains(name)) throw DataError("val: class \"{}\" of train has no images", name);
  }
}

ImagesFacts facts_of(const ClassCounts& train, const ClassCounts& val, const fs::path& input,
                     int64_t test) {
  if (train.empty()) {
    DataError error("{}: no images to train on", input.string());
    if (test > 0) error.set_cause(fmt::format("{} are of the test split", with_commas(test)));
    throw error;
  }
  if (train.size() == 1) {
    DataError error("{}: all images are of one class, \"{}\"", input.string(),
                    train.begin()->first);
    error.set_cause("a classifier needs two or more: a folder for each");
    throw error;
  }
  check_split_classes(train, val);
  ImagesFacts out;
  out.smallest_class = INT64_MAX;
  for (const auto& [name, count] : train) {
    out.classes.push_back(name);
    out.train += count;
    out.smallest_class = std::min(out.smallest_class, count);
    out.largest_class = std::max(out.largest_class, count);
    if (val.empty() && count < 2) {
      DataError error("{}: class \"{}\" has a single image, and there is no val", input.string(),
                      name);
      error.set_advice("two images or more for each class, or a val split");
      throw error;
    }
  }
  for (const auto& [name, count] : val) out.val += count;
  return out;
}

ImagesFacts facts_of_shards(const fs::path& folder) {
  const ImagesManifest manifest = read_images_manifest(folder);
  const auto count = [&](const char* split, PixelCounter* pixels) {
    ClassCounts out;
    if (manifest.find_split(split) == nullptr) return out;
    const std::unique_ptr<ImageSet> set = open_image_set(folder, split);
    const int64_t every = std::max<int64_t>(1, set->size() / kSampled);
    Bytes space;
    for (int64_t i = 0; i < set->size(); ++i) {
      ++out[set->classes()[static_cast<std::size_t>(set->label(i))]];
      if (pixels != nullptr && i % every == 0) pixels->add(set->bytes(i, space));
    }
    return out;
  };
  PixelCounter pixels;
  const ClassCounts train = count("train", &pixels), val = count("val", nullptr);
  const ImageSplitRecord* test = manifest.find_split("test");
  ImagesFacts out = facts_of(train, val, folder, test == nullptr ? 0 : test->images);
  out.prepared = true;
  pixels.fill(out);
  return out;
}

}  // namespace

ImagesFacts read_images_facts(const ImagesInput& input) {
  if (fs::is_directory(input.input) && has_manifest(input.input)) {
    return facts_of_shards(input.input);
  }
  const ImageColumns columns{.image = "", .label = input.label, .class_names = {}};
  const FlatLabels labels = input.classes_by_name       ? FlatLabels::by_file_names()
                            : input.flat_labels.empty() ? FlatLabels()
                                                        : FlatLabels(input.flat_labels, columns);
  const std::unique_ptr<ImageSource> source = open_image_source(input.input, labels, columns);
  ClassCounts train, val;
  ImageSample sample;
  std::vector<SourceImage> kept;
  Progress progress("listing", "images");
  int64_t listed = 0, test = 0;
  while (std::optional<SourceImage> image = source->next()) {
    progress.show(++listed);
    if (image->split == "test") {
      ++test;
      continue;
    }
    const bool for_training = image->split == "train";
    ++(for_training ? train : val)[image->class_name];
    if (!for_training) continue;
    if (const std::optional<std::size_t> place = sample.place()) {
      kept.resize(std::max(kept.size(), *place + 1));
      kept[*place] = std::move(*image);
    }
  }
  ImagesFacts out = facts_of(train, val, input.input, test);
  if (const UnreadPictures unread = source->unread(); !unread.empty()) out.unread = unread.text();
  PixelCounter pixels;
  for (SourceImage& image : kept) pixels.add(std::move(image).take_content());
  pixels.fill(out);
  return out;
}

std::vector<std::string> describe_image_facts(const ImagesFacts& facts) {
  std::vector<std::string> out{
      fmt::format("{} images of {} classes ({} to {} each)", with_commas(facts.train),
                  facts.classes.size(), with_commas(facts.smallest_class),
                  with_commas(facts.largest_class)) +
      (facts.val == 0 ? ", no val split" : fmt::format(", {} of val", with_commas(facts.val)))};
  std::string sizes =
      facts.one_size ? fmt::format("all of {0} x {0} pixels", facts.shorter_side)
                     : fmt::format("a shorter side of {} pixels in the middle of all, {} at least",
                                   facts.shorter_side, facts.smallest_side);
  if (facts.grey_share > 0) sizes += fmt::format(", {:.0f} % grey", 100 * facts.grey_share);
  if (facts.broken > 0) sizes += fmt::format(", {} cannot be decoded", facts.broken);
  out.push_back(fmt::format("of {} looked at: {}", facts.sampled, sizes));
  if (!facts.unread.empty()) out.push_back(facts.unread);
  return out;
}

}  // namespace lockstep
