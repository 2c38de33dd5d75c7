#include "data/images/prepare_images.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/ordered_parallel.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "data/images/image_decoder.h"
#include "data/images/image_names.h"
#include "data/images/image_resize.h"
#include "data/images/image_source.h"
#include "data/images/jpeg_writer.h"
#include "data/lines/progress.h"
#include "formats/image_index.h"

namespace lockstep {

namespace {

// The result of one worker for one image.
struct Prepared {
  SourceImage source;
  std::vector<std::byte> bytes;
  ImageSum sum = {};  // of the bytes
  std::vector<std::string> odd;
  std::string broken;  // why it cannot be decoded; empty if it can
};

std::vector<std::string> oddities(const ImageInfo& info, const std::string& file) {
  std::vector<std::string> out;
  if (info.format != format_of_name(file)) {
    out.push_back(fmt::format("{} named {}", info.format, fs::path(file).extension().string()));
  }
  if (info.cmyk) out.emplace_back("CMYK");
  if (info.channels <= 2) out.emplace_back("greyscale");
  if (info.bits > 8) out.push_back(fmt::format("{} bits", info.bits));
  return out;
}

std::vector<std::byte> resized(ImageDecoder& decoder, const PrepareImagesOptions& options) {
  const ImageInfo info = decoder.info();
  int64_t shorter = std::min(info.width, info.height);
  int64_t width = info.width * options.resize / shorter;
  int64_t height = info.height * options.resize / shorter;
  ImageResizer resizer;
  auto plan = [](ResizeAxis& axis, int64_t from, int64_t to) {
    axis.plan({0, static_cast<double>(from), to, 0, to}, 0, from, ResizeFilter::kBicubic);
  };
  plan(resizer.x, info.width, width);
  plan(resizer.y, info.height, height);
  std::vector<uint8_t> pixels(static_cast<std::size_t>(3 * width * height));
  resizer.resize(decoder.decode({0, 0, info.width, info.height}), false, pixels.data(), 3 * width);
  bool grey = info.channels <= 2;
  return encode_jpeg({pixels.data(), width, height}, static_cast<int>(options.quality), grey);
}

Prepared prepare_one(SourceImage source, const PrepareImagesOptions& options) {
  Prepared out{.source = std::move(source)};
  try {
    out.bytes = std::move(out.source).take_content();
    ImageDecoder decoder;
    ImageInfo info = decoder.open(out.bytes);
    out.odd = oddities(info, out.source.file);
    if (options.resize > 0 && std::min(info.width, info.height) > options.resize) {
      out.bytes = resized(decoder, options);
    } else {  // decodes small pixels, which is fast and still reads the whole file
      decoder.decode({0, 0, info.width, info.height}, 8);
    }
    out.sum = sum_of_image(out.bytes);
  } catch (const DataError& error) {
    out.broken = error.describe();
    if (std::size_t line = out.broken.find("\n  because: "); line != std::string::npos) {
      out.broken.replace(line, 12, ": ");
    }
  }
  return out;
}

// The shards of one split while they are being written.
class SplitShards {
 public:
  SplitShards(fs::path folder, std::string name, int64_t shard_bytes)
      : folder_(std::move(folder)), shard_bytes_(static_cast<uint64_t>(shard_bytes)) {
    record.name = std::move(name);
    record.index = record.name + ".index";
    record.sums = record.name + ".sums";
  }

  void add(const SourceImage& source, std::span<const std::byte> bytes, const ImageSum& sum) {
    if (bytes.size() > UINT32_MAX) throw DataError("{}: larger than 4 GiB", source.name());
    if (writer_ && writer_->bytes() + bytes.size() > shard_bytes_) end_shard();
    if (!writer_) {
      record.shards.push_back(fmt::format("{}-{:05}.shard", record.name, record.shards.size()));
      writer_ = std::make_unique<ImageShardWriter>(folder_ / record.shards.back());
    }
    images_.push_back({.name = source.class_name + "/" + source.file,
                       .shard = static_cast<uint32_t>(record.shards.size() - 1),
                       .offset = writer_->add(bytes),
                       .bytes = static_cast<uint32_t>(bytes.size()),
                       .sum = sum});
    record.bytes += static_cast<int64_t>(bytes.size());
    classes.insert(source.class_name);
  }

  // Writes the index, sorted like a folder, and appends the records of the split's files.
  void finish(const std::vector<std::string>& all_classes, std::vector<FileRecord>& files) {
    end_shard();
    auto class_of = [](const ImageRecord& image) {
      return std::string_view(image.name).substr(0, image.name.find('/'));
    };
    for (ImageRecord& image : images_) {
      auto at = std::lower_bound(all_classes.begin(), all_classes.end(), class_of(image));
      image.label = static_cast<uint32_t>(at - all_classes.begin());
    }
    auto key = [](const ImageRecord& image) { return std::tie(image.label, image.name); };
    std::sort(images_.begin(), images_.end(),
              [&](const auto& a, const auto& b) { return key(a) < key(b); });
    for (std::size_t i = 1; i < images_.size(); ++i) {
      if (images_[i].name == images_[i - 1].name) {
        throw DataError("{}/{}: twice in the input", record.name, images_[i].name);
      }
    }
    write_image_index(folder_ / record.index, images_);
    write_image_sums(folder_ / record.sums, images_);
    record.images = static_cast<int64_t>(images_.size());
    for (FileRecord& file : shard_files_) files.push_back(std::move(file));
    files.push_back(record_file(folder_ / record.index));
    files.push_back(record_file(folder_ / record.sums));
  }

  ImageSplitRecord record;
  std::set<std::string> classes;

 private:
  void end_shard() {
    if (!writer_) return;
    auto bytes = static_cast<int64_t>(writer_->bytes());
    shard_files_.push_back({record.shards.back(), bytes, writer_->finish()});
    writer_.reset();
  }

  fs::path folder_;
  uint64_t shard_bytes_;
  std::unique_ptr<ImageShardWriter> writer_;
  std::vector<ImageRecord> images_;
  std::vector<FileRecord> shard_files_;
};

using Splits = std::map<std::string, SplitShards>;  // test, train, val

// Takes a share of the images of every class for val, spread evenly over their order. The first
// image of each class is always taken, so that no class is missing in val.
class HeldOut {
 public:
  explicit HeldOut(double share) : share_(share) {}

  std::string split_of(const SourceImage& image) {
    if (share_ == 0 || image.split == "test") return image.split;
    if (image.split != "train") {
      throw ConfigError("--hold-out: there is a {} split already ({})", image.split, image.name());
    }
    const auto before = static_cast<double>(seen_[image.class_name]++);
    return std::floor(before * share_) > std::floor((before - 1) * share_) ? "val" : "train";
  }

 private:
  double share_;
  std::map<std::string, int64_t> seen_;  // number of images by class
};

void check_options(const PrepareImagesOptions& options) {
  if (options.resize != 0 && options.resize < 8) {
    throw ConfigError("--resize {}: expected 8 or more pixels, or 0", options.resize);
  }
  if (options.quality < 1 || options.quality > 100) {
    throw ConfigError("--quality {}: expected 1 to 100", options.quality);
  }
  if (options.shard_bytes < 1) {
    throw ConfigError("--shard-bytes {}: expected a size", options.shard_bytes);
  }
  if (!(options.hold_out >= 0 && options.hold_out <= 0.5)) {
    throw ConfigError("--hold-out {}: expected a share from 0 to 0.5", options.hold_out);
  }
  if (options.classes_by_name && !options.flat_labels.empty()) {
    throw ConfigError("--classes-by-name and --labels: expected one of the two");
  }
  if (has_manifest(options.out)) {
    ConfigError error("{}: already holds prepared data", options.out.string());
    error.set_advice("another --out, or remove it first");
    throw error;
  }
  std::error_code error;
  fs::create_directories(options.out, error);
  if (error) throw MachineError("{}: cannot be created: {}", options.out.string(), error.message());
}

void note(const Prepared& image, const PrepareImagesOptions& options, ImagesManifest& manifest) {
  std::string name = image.source.name();
  if (!image.broken.empty()) {
    if (options.fail_on_broken) {
      DataError error("{}: cannot be decoded", name);
      error.set_cause(image.broken);
      throw error;
    }
    manifest.left_out.push_back({name, image.broken});
    return;
  }
  for (const std::string& what : image.odd) {
    if (manifest.odd_counts[what]++ < kOddNamed) manifest.odd.push_back({name, what});
  }
}

// Returns the classes of train if there is one; throws DataError if another split has a class that
// train lacks.
std::vector<std::string> classes_of(const Splits& splits) {
  if (splits.empty()) throw DataError("no image could be decoded");
  auto train = splits.find("train");
  std::set<std::string> names;
  if (train != splits.end()) {
    names = train->second.classes;
  } else {
    for (const auto& [name, split] : splits)
      names.insert(split.classes.begin(), split.classes.end());
  }
  for (const auto& [name, split] : splits) {
    for (const std::string& one : split.classes) {
      if (!names.contains(one)) {
        throw DataError("{}: class \"{}\" is not in train{}", name, one,
                        did_you_mean(one, {names.begin(), names.end()}));
      }
    }
    for (const std::string& one : names) {
      if (!split.classes.contains(one)) log_warning("{}: class \"{}\" has no images", name, one);
    }
  }
  return {names.begin(), names.end()};
}

}  // namespace

ImagesManifest prepare_images(const PrepareImagesOptions& options) {
  check_options(options);
  const FlatLabels labels = options.classes_by_name ? FlatLabels::by_file_names()
                            : options.flat_labels.empty()
                                ? FlatLabels()
                                : FlatLabels(options.flat_labels, options.columns);
  std::unique_ptr<ImageSource> source =
      options.inputs.empty() ? open_image_source(options.input, labels, options.columns)
                             : open_image_inputs(options.inputs, labels, options.columns);
  ImagesManifest manifest;
  manifest.lockstep_version = LOCKSTEP_VERSION;
  manifest.input =
      options.input_name.empty() ? options.input.filename().string() : options.input_name;
  manifest.parameters = {{"resize", std::to_string(options.resize)},
                         {"quality", std::to_string(options.quality)},
                         {"shard-bytes", std::to_string(options.shard_bytes)},
                         {"hold-out", fmt::format("{}", options.hold_out)}};
  Splits splits;
  HeldOut held_out(options.hold_out);
  Progress progress("preparing", "images");
  int64_t done = 0;
  ordered_stream(
      options.threads > 0 ? options.threads : usable_threads(), [&] { return source->next(); },
      [&](SourceImage image) { return prepare_one(std::move(image), options); },
      [&](Prepared image) {
        progress.update(++done);
        note(image, options, manifest);
        if (!image.broken.empty()) return;
        const std::string name = held_out.split_of(image.source);
        auto [it, added] = splits.try_emplace(name, options.out, name, options.shard_bytes);
        it->second.add(image.source, image.bytes, image.sum);
      });
  if (const UnreadPictures unread = source->unread(); !unread.empty()) {
    log_warning("{}: {}", manifest.input, unread.text());
  }
  manifest.classes = classes_of(splits);
  for (auto& [name, split] : splits) {
    split.finish(manifest.classes, manifest.files);
    manifest.splits.push_back(split.record);
  }
  write_images_manifest(options.out, manifest);
  return manifest;
}

std::string describe_images(const ImagesManifest& manifest) {
  std::string out;
  for (const ImageSplitRecord& split : manifest.splits) {
    out += fmt::format("{:<6} {:>12} images  {:>9} in {} shards\n", split.name,
                       with_commas(split.images), short_bytes(static_cast<double>(split.bytes)),
                       split.shards.size());
  }
  out += fmt::format("{} classes\n", with_commas(static_cast<int64_t>(manifest.classes.size())));
  for (const auto& [what, count] : manifest.odd_counts) {
    out += fmt::format("{:>8} {}\n", with_commas(count), what);
  }
  if (!manifest.left_out.empty()) {
    out += fmt::format("{:>8} left out, as they cannot be decoded:\n",
                       with_commas(static_cast<int64_t>(manifest.left_out.size())));
    constexpr std::size_t kShown = 10;
    for (std::size_t i = 0; i < std::min(kShown, manifest.left_out.size()); ++i) {
      out += fmt::format("         {}: {}\n", manifest.left_out[i].name, manifest.left_out[i].what);
    }
    if (manifest.left_out.size() > kShown) out += "         ... all in manifest.json\n";
  }
  return out;
}

}  // namespace lockstep
