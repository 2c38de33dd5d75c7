#include "data/images/image_source.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/fetch/archive_entries.h"
#include "data/images/image_names.h"
#include "data/images/parquet_images.h"
#include "data/images/picture_list.h"
#include "data/labelled/text_inputs.h"

namespace lockstep {

namespace {

std::vector<fs::path> sorted_children(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.path().filename().string().starts_with(".")) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<int64_t> number_at_end(std::string_view file) {
  std::string stem = fs::path(file).stem().string();
  std::size_t begin = stem.find_last_not_of("0123456789") + 1;
  if (begin == stem.size() || stem.size() - begin > 9) return std::nullopt;
  return std::stoll(stem.substr(begin));
}

// ILSVRC's test images have no labels.
bool without_label(const std::string& split, const std::string& file, const FlatLabels& labels) {
  return split == "test" && !labels.knows(file);
}

// Returns whether the folder itself contains images.
bool holds_images(const fs::path& folder) {
  if (!fs::is_directory(folder)) return false;
  const auto is_image = [](const fs::directory_entry& entry) {
    return is_image_name(entry.path().filename().string());
  };
  return std::any_of(fs::directory_iterator(folder), fs::directory_iterator(), is_image);
}

bool all_digits(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

// Reads CLASS/FILE.jpg, CLASS.tar or FILE.jpg below one folder.
class FolderSource : public ImageSource {
 public:
  FolderSource(const fs::path& folder, std::string split, const FlatLabels& labels)
      : split_(std::move(split)), labels_(labels) {
    for (const fs::path& child : sorted_children(folder)) children_.push_back(child);
  }

  std::optional<SourceImage> next() override {
    while (true) {
      if (archive_) {
        if (auto image = next_archived()) return image;
        archive_.reset();
      }
      if (!files_.empty()) {
        fs::path path = std::move(files_.front());
        files_.pop_front();
        return SourceImage{split_, class_, path.filename().string(), path, {}};
      }
      if (children_.empty()) return std::nullopt;
      fs::path child = std::move(children_.front());
      children_.pop_front();
      if (auto image = enter(child)) return image;
    }
  }

 private:
  std::optional<SourceImage> enter(const fs::path& child) {
    std::string name = child.filename().string();
    if (fs::is_directory(child)) {
      class_ = name;
      for (fs::path& file : sorted_children(child)) {
        if (is_image_name(file.filename().string())) files_.push_back(std::move(file));
      }
    } else if (is_archive_name(name)) {
      class_ = archive_stem(child);
      archive_ = std::make_unique<ArchiveEntries>(child);
    } else if (is_image_name(name) && !without_label(split_, name, labels_)) {
      return SourceImage{split_, labels_.of(name), name, child, {}};
    }
    return std::nullopt;
  }

  std::optional<SourceImage> next_archived() {
    while (std::optional<std::string> path = archive_->next()) {
      std::string file = fs::path(*path).filename().string();
      if (is_image_name(file)) return SourceImage{split_, class_, file, {}, archive_->read()};
    }
    return std::nullopt;
  }

  std::string split_, class_;
  const FlatLabels& labels_;
  std::deque<fs::path> children_, files_;
  std::unique_ptr<ArchiveEntries> archive_;
};

// Reads [SPLIT/]CLASS/FILE.jpg, CLASS.tar or FILE.jpg in an archive. Paths without a split belong
// to the split that the archive's name gives.
class ArchiveSource : public ImageSource {
 public:
  // `split` is of paths without one.
  ArchiveSource(const fs::path& path, std::string split, const FlatLabels& labels)
      : path_(path), split_(std::move(split)), labels_(labels), outer_(path) {}

  std::optional<SourceImage> next() override {
    while (true) {
      if (inner_) {
        while (std::optional<std::string> path = inner_->next()) {
          std::string file = fs::path(*path).filename().string();
          if (is_image_name(file)) {
            return SourceImage{need_split(*path), class_, file, {}, inner_->read()};
          }
        }
        inner_.reset();
      }
      std::optional<std::string> path = outer_.next();
      if (!path) return std::nullopt;
      std::string file = fs::path(*path).filename().string();
      if (is_archive_name(file)) {
        class_ = archive_stem(file);
        inner_ = std::make_unique<ArchiveEntries>(outer_.read(), path_.string() + ": " + *path);
      } else if (is_image_name(file)) {
        if (auto image = image_at(*path, file)) return image;
      }
    }
  }

 private:
  // Returns nothing if the image is to be skipped.
  std::optional<SourceImage> image_at(const std::string& path, const std::string& file) {
    std::vector<std::string> parts = split(path, '/');
    std::string folder = parts.size() >= 2 ? parts[parts.size() - 2] : "";
    std::string above = parts.size() >= 3 ? split_of_name(parts[parts.size() - 3]) : "";
    // A split's name two levels above the file is its split; directly above the file it means a
    // flat split.
    bool flat = folder.empty() || (above.empty() && !split_of_name(folder).empty());
    SourceImage out{.split = flat ? split_of_name(folder) : above, .file = file};
    if (out.split.empty()) out.split = need_split(path);
    if (flat && without_label(out.split, file, labels_)) return std::nullopt;
    out.class_name = flat ? labels_.of(file) : folder;
    out.bytes = outer_.read();
    return out;
  }

  const std::string& need_split(const std::string& entry) const {
    if (split_.empty()) {
      DataError error("{}: {}: not clear of which split", path_.string(), entry);
      error.set_advice(
          "name the archive train.tar, val.tar or test.tar, or its entries "
          "SPLIT/CLASS/FILE");
      throw error;
    }
    return split_;
  }

  fs::path path_;
  std::string split_, class_;
  const FlatLabels& labels_;
  ArchiveEntries outer_;
  std::unique_ptr<ArchiveEntries> inner_;
};

class SourceList : public ImageSource {
 public:
  // Archives are opened only when they are needed.
  void add(std::function<std::unique_ptr<ImageSource>()> open) {
    waiting_.push_back(std::move(open));
  }
  bool empty() const { return waiting_.empty(); }

  std::optional<SourceImage> next() override {
    while (true) {
      if (present_) {
        if (auto image = present_->next()) return image;
        present_.reset();
      }
      if (waiting_.empty()) return std::nullopt;
      present_ = waiting_.front()();
      waiting_.pop_front();
    }
  }

 private:
  std::deque<std::function<std::unique_ptr<ImageSource>()>> waiting_;
  std::unique_ptr<ImageSource> present_;
};

}  // namespace

FlatLabels::FlatLabels(const fs::path& list) : path_(list) {
  for_each_line(list, [&](std::string_view line, int64_t number) {
    std::vector<std::string_view> words = split_words(line);
    if (words.empty()) return;
    bool named = words.size() == 2;
    bool right = words.size() <= 2 && (named ? by_number_.empty() : by_name_.empty());
    if (!right) {
      throw DataError("{}:{}: expected FILE and CLASS, or CLASS alone, as in the lines before",
                      list.string(), number);
    }
    if (all_digits(words.back())) {
      DataError error("{}:{}: expected the name of a class, got the number {}", list.string(),
                      number, words.back());
      error.set_cause(
          "the numbers of ILSVRC's ground truth follow its own list, others a sorted "
          "one");
      error.set_advice(
          "a list with WordNet ids, such as "
          "imagenet_2012_validation_synset_labels.txt");
      throw error;
    }
    if (named) {
      by_name_.emplace(fs::path(words[0]).filename().string(), words[1]);
    } else {
      by_number_.emplace_back(words[0]);
    }
  });
  if (empty()) throw DataError("{}: an empty list of labels", list.string());
}

const std::string* FlatLabels::find(const std::string& file) const {
  if (auto it = by_name_.find(file); it != by_name_.end()) return &it->second;
  std::optional<int64_t> number = number_at_end(file);
  bool listed = number && *number >= 1 && *number <= static_cast<int64_t>(by_number_.size());
  return listed ? &by_number_[static_cast<std::size_t>(*number - 1)] : nullptr;
}

const std::string& FlatLabels::of(const std::string& file) const {
  if (empty()) {
    DataError error("{}: an image without a folder of its class", file);
    error.set_advice("--val-labels FILE, with a line \"FILE CLASS\" for each");
    throw error;
  }
  const std::string* label = find(file);
  if (label == nullptr) throw DataError("{}: no line for {}", path_.string(), file);
  return *label;
}

std::unique_ptr<ImageSource> open_image_source(const fs::path& input, const FlatLabels& labels,
                                               const ImageColumns& columns) {
  if (!fs::exists(input)) throw DataError("{}: no such file or folder", input.string());
  auto list = std::make_unique<SourceList>();
  auto add = [&](const fs::path& path) {
    std::string name = path.filename().string();
    if (fs::is_directory(path)) {
      std::string split = split_of_name(name);
      if (split.empty()) return;
      list->add(
          [path, split, &labels] { return std::make_unique<FolderSource>(path, split, labels); });
    } else if (is_archive_name(name)) {
      list->add([path, &labels] {
        return std::make_unique<ArchiveSource>(path, split_of_name(archive_stem(path)), labels);
      });
    } else if (path.extension() == ".parquet") {
      const std::string split = text_split_of_name(name);
      list->add([path, columns, split = split == "validation" ? "val" : split] {
        return open_parquet_images(path, split.empty() ? "train" : split, columns);
      });
    }
  };
  if (fs::is_directory(input)) {
    const std::vector<fs::path> children = sorted_children(input);
    for (const fs::path& child : children) add(child);
    if (list->empty() && std::any_of(children.begin(), children.end(), holds_images)) {
      list->add(
          [input, &labels] { return std::make_unique<FolderSource>(input, "train", labels); });
    }
  } else {
    add(input);
  }
  if (list->empty()) {
    DataError error("{}: no images found", input.string());
    error.set_advice(
        "expected train/CLASS/FILE.jpg or CLASS/FILE.jpg, or archives such as train.tar and "
        "val.zip");
    throw error;
  }
  return list;
}

std::unique_ptr<ImageSource> open_image_inputs(const std::vector<ImageInput>& inputs,
                                               const FlatLabels& labels,
                                               const ImageColumns& columns) {
  auto list = std::make_unique<SourceList>();
  std::vector<ImageInput> pictures;
  for (const ImageInput& input : inputs) {
    if (input.path.extension() == ".parquet") {
      list->add([input, columns] { return open_parquet_images(input.path, input.split, columns); });
    } else if (is_archive_name(input.path.filename().string())) {
      list->add([input, &labels] {
        return std::make_unique<ArchiveSource>(input.path, input.split, labels);
      });
    } else {
      pictures.push_back(input);
    }
  }
  if (!pictures.empty()) {
    list->add([pictures, &labels, columns] { return open_pictures(pictures, labels, columns); });
  }
  return list;
}

}  // namespace lockstep
