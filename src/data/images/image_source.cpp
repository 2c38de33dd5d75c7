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
#include "data/labelled/delimited_text.h"
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

// Names of columns as Kaggle and others use them.
const std::vector<std::string> kFileColumns = {"file_name", "filename", "file",       "image",
                                               "image_id",  "imageid",  "image_name", "image_path",
                                               "path",      "id"};
const std::vector<std::string> kLabelColumns = {
    "label", "labels", "class", "class_name", "target", "class_id", "category", "predictionstring"};

// Returns the place of a column: of the one that is wanted, else of the first of the known names,
// in any case. Throws DataError when the wanted one is not there.
std::optional<std::size_t> column_of(const std::vector<std::string>& header,
                                     const std::string& wanted, const char* option,
                                     const std::vector<std::string>& known, const fs::path& table) {
  const std::vector<std::string> names = wanted.empty() ? known : std::vector{wanted};
  for (const std::string& name : names) {
    for (std::size_t i = 0; i < header.size(); ++i) {
      if (equals_ignoring_case(header[i], name)) return i;
    }
  }
  if (wanted.empty()) return std::nullopt;
  throw DataError("{}: no column \"{}\" ({}){}; it has {}", table.string(), wanted, option,
                  did_you_mean(wanted, header), join(header, ", "));
}

bool all_digits(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
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

FlatLabels::FlatLabels(const fs::path& list, const ImageColumns& columns) : path_(list) {
  if (list.extension() == ".csv" || list.extension() == ".tsv") {
    read_table(columns);
  } else {
    read_list();
  }
  if (empty()) throw DataError("{}: an empty list of labels", list.string());
}

void FlatLabels::read_table(const ImageColumns& columns) {
  DelimitedReader rows(path_, separation_of(path_));
  std::vector<std::string> row;
  if (!rows.next(row)) return;
  const std::vector<std::string> header = row;
  const std::size_t file =
      column_of(header, columns.image, "--image", kFileColumns, path_).value_or(0);
  const std::optional<std::size_t> named =
      column_of(header, columns.label, "--label", kLabelColumns, path_);
  if (!named && header.size() != 2) {
    DataError error("{}: which column is the class? (it has {})", path_.string(),
                    join(header, ", "));
    error.set_advice("--label COLUMN");
    throw error;
  }
  const std::size_t label = named ? *named : 1 - file;
  const bool boxes = equals_ignoring_case(header[label], "PredictionString");
  while (rows.next(row)) {
    const std::string place = fmt::format("{}:{}", path_.string(), rows.line());
    if (row.size() != header.size()) {
      throw DataError("{}: {} field{}, expected {} as in the header", place, row.size(),
                      row.size() == 1 ? "" : "s", header.size());
    }
    std::string value(trim(row[label]));
    if (boxes) value = value.substr(0, value.find(' '));
    if (value.empty()) throw DataError("{}: no class for {}", place, row[file]);
    const fs::path name = fs::path(row[file]).filename();
    by_name_.emplace(is_image_name(name.string()) ? name.stem().string() : name.string(),
                     class_of_label(value, {}, place));
  }
}

void FlatLabels::read_list() {
  for_each_line(path_, [&](std::string_view line, int64_t number) {
    std::vector<std::string_view> words = split_words(line);
    if (words.empty()) return;
    bool named = words.size() == 2;
    bool right = words.size() <= 2 && (named ? by_number_.empty() : by_name_.empty());
    if (!right) {
      throw DataError("{}:{}: expected FILE and CLASS, or CLASS alone, as in the lines before",
                      path_.string(), number);
    }
    if (all_digits(words.back())) {
      DataError error("{}:{}: expected the name of a class, got the number {}", path_.string(),
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
}

const std::string* FlatLabels::find(const std::string& file) const {
  for (const std::string& name : {file, fs::path(file).stem().string()}) {
    if (auto it = by_name_.find(name); it != by_name_.end()) return &it->second;
  }
  std::optional<int64_t> number = number_at_end(file);
  bool listed = number && *number >= 1 && *number <= static_cast<int64_t>(by_number_.size());
  return listed ? &by_number_[static_cast<std::size_t>(*number - 1)] : nullptr;
}

const std::string& FlatLabels::of(const std::string& file) const {
  if (empty()) {
    DataError error("{}: an image without a folder of its class", file);
    error.set_advice("--labels FILE: a csv, or a line \"FILE CLASS\" for each");
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
