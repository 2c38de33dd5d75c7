#include "data/images/image_source.h"

#include <algorithm>
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
#include "data/images/pixel_source.h"
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

// Reads CLASS/FILE.jpg, CLASS.tar or FILE.jpg below one folder.
class FolderSource : public ImageSource {
 public:
  // With `by_list` folders are no classes: the labels say that of each file.
  FolderSource(const fs::path& folder, std::string split, const FlatLabels& labels,
               bool by_list = false)
      : split_(std::move(split)), by_list_(by_list), labels_(labels) {
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
        const std::string name = path.filename().string();
        return SourceImage{split_, by_list_ ? labels_.of(name) : class_, name, path, {}};
      }
      if (children_.empty()) return std::nullopt;
      fs::path child = std::move(children_.front());
      children_.pop_front();
      if (auto image = enter(child)) return image;
    }
  }

  UnreadPictures unread() const override { return unread_; }

 private:
  std::optional<SourceImage> enter(const fs::path& child) {
    std::string name = child.filename().string();
    unread_.note(name);
    if (fs::is_directory(child)) {
      class_ = name;
      for (fs::path& file : sorted_children(child)) {
        unread_.note(file.filename().string());
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
      unread_.note(file);
      if (is_image_name(file)) return SourceImage{split_, class_, file, {}, archive_->read()};
    }
    return std::nullopt;
  }

  std::string split_, class_;
  bool by_list_;
  const FlatLabels& labels_;
  std::deque<fs::path> children_, files_;
  UnreadPictures unread_;
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
          unread_.note(file);
          if (is_image_name(file)) {
            return SourceImage{need_split(*path), class_, file, {}, inner_->read()};
          }
        }
        inner_.reset();
      }
      std::optional<std::string> path = outer_.next();
      if (!path) return std::nullopt;
      std::string file = fs::path(*path).filename().string();
      unread_.note(file);
      if (is_archive_name(file)) {
        class_ = archive_stem(file);
        inner_ = std::make_unique<ArchiveEntries>(outer_.read(), path_.string() + ": " + *path);
      } else if (is_image_name(file)) {
        if (auto image = image_at(*path, file)) return image;
      }
    }
  }

  UnreadPictures unread() const override { return unread_; }

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
  UnreadPictures unread_;
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
        unread_.add(present_->unread());
        present_.reset();
      }
      if (waiting_.empty()) return std::nullopt;
      present_ = waiting_.front()();
      waiting_.pop_front();
    }
  }

  UnreadPictures unread() const override {
    UnreadPictures out = unread_;
    if (present_) out.add(present_->unread());
    return out;
  }

 private:
  std::deque<std::function<std::unique_ptr<ImageSource>()>> waiting_;
  std::unique_ptr<ImageSource> present_;
  UnreadPictures unread_;
};

}  // namespace

std::vector<std::byte> SourceImage::take_content() && {
  if (!array && path.empty()) return std::move(bytes);
  const std::string file_bytes = array ? array->encode(number) : read_file(path);
  const auto* begin = reinterpret_cast<const std::byte*>(file_bytes.data());
  return {begin, begin + file_bytes.size()};
}

std::unique_ptr<ImageSource> open_image_source(const fs::path& input, const FlatLabels& labels,
                                               const ImageColumns& columns) {
  if (!fs::exists(input)) throw DataError("{}: no such file or folder", input.string());
  if (labels.empty()) {
    if (auto pixels = open_pixel_source(input, columns.label)) return pixels;
  }
  auto list = std::make_unique<SourceList>();
  auto add = [&](const fs::path& path) {
    std::string name = path.filename().string();
    if (fs::is_directory(path)) {
      std::string split = split_of_name(name);
      if (split.empty()) return;
      list->add(
          [path, split, &labels] { return std::make_unique<FolderSource>(path, split, labels); });
    } else if (is_archive_name(name)) {
      list->add([path, &labels, columns]() -> std::unique_ptr<ImageSource> {
        if (auto pixels = labels.empty() ? open_pixel_source(path, columns.label) : nullptr) {
          return pixels;
        }
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
    const bool flat = holds_images(input);
    if (list->empty() && (flat || std::any_of(children.begin(), children.end(), holds_images))) {
      list->add([input, &labels] {
        return std::make_unique<FolderSource>(input, "train", labels, !labels.empty());
      });
    }
  } else {
    add(input);
  }
  if (list->empty()) {
    UnreadPictures unread;
    for (const fs::path& child :
         fs::is_directory(input) ? sorted_children(input) : std::vector<fs::path>()) {
      unread.note(child.filename().string());
      if (!fs::is_directory(child)) continue;
      for (const fs::path& file : sorted_children(child)) unread.note(file.filename().string());
    }
    DataError error("{}: no images found", input.string());
    if (!unread.empty()) error.set_cause(unread.text());
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
