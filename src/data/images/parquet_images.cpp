#include "data/images/parquet_images.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/images/picture_list.h"
#include "data/labelled/parquet_text.h"
#include "formats/parquet_file.h"

namespace lockstep {

namespace {

bool is_image(const ParquetColumn& column) {
  return column.kind == ParquetKind::kImage || column.kind == ParquetKind::kBinary;
}

bool is_label(const ParquetColumn& column) {
  return column.name == "label" || column.name == "labels" || column.name == "fine_label";
}

class ParquetImages : public ImageSource {
 public:
  ParquetImages(const fs::path& path, std::string split, const ImageColumns& wanted)
      : path_(path), split_(std::move(split)), file_(open_parquet(path)) {
    const std::vector<ParquetColumn>& columns = file_->columns();
    auto need = [&](const auto& matches, const std::string& what) {
      const auto found = std::find_if(columns.begin(), columns.end(), matches);
      if (found != columns.end()) return static_cast<int>(found - columns.begin());
      std::vector<std::string> names;
      for (const ParquetColumn& column : columns) names.push_back(column.name + ": " + column.type);
      throw DataError("{}: no column {} (it has {})", path_.string(), what, join(names, ", "));
    };
    auto named = [](const std::string& name) {
      return [name](const ParquetColumn& column) { return column.name == name; };
    };
    const int image = wanted.image.empty()
                          ? need(is_image, "of images")
                          : need(named(wanted.image), "\"" + wanted.image + "\" (--image)");
    const int label = wanted.label.empty()
                          ? need(is_label, "\"label\"; --label COLUMN")
                          : need(named(wanted.label), "\"" + wanted.label + "\" (--label)");
    if (!is_image(columns[image])) {
      throw DataError(
          "{}: column \"{}\" is of type {}, expected images: a struct of bytes and "
          "path, or bytes",
          path_.string(), columns[image].name, columns[image].type);
    }
    wanted_ = {image, label};
    classes_ = parquet_class_names(*file_, columns[label].name);
    if (classes_.empty()) classes_ = names_of_labels(wanted, columns[label].name);
  }

  std::optional<SourceImage> next() override {
    while (cells_.empty() || at_ == cells_[0].values.size()) {
      if (!file_->next(wanted_, cells_)) return std::nullopt;
      at_ = 0;
    }
    const std::string place = fmt::format("{}: row {}", path_.string(), ++row_);
    const std::optional<std::string>& bytes = cells_[0].values[at_];
    const std::optional<std::string>& label = cells_[1].values[at_];
    if (!bytes) throw DataError("{}: no image", place);
    if (!label) throw DataError("{}: no label", place);
    ++at_;
    const auto* begin = reinterpret_cast<const std::byte*>(bytes->data());
    return SourceImage{.split = split_,
                       .class_name = class_of_label(*label, classes_, place),
                       .file = fmt::format("{}-{:08}.{}", path_.stem().string(), row_,
                                           bytes->starts_with("\x89PNG") ? "png" : "jpg"),
                       .bytes = {begin, begin + bytes->size()}};
  }

 private:
  fs::path path_;
  std::string split_;
  std::unique_ptr<ParquetFile> file_;
  std::vector<int> wanted_;  // image, label
  std::vector<std::string> classes_;
  std::vector<ParquetCells> cells_;  // of the current batch
  std::size_t at_ = 0;
  int64_t row_ = 0;
};

}  // namespace

std::unique_ptr<ImageSource> open_parquet_images(const fs::path& path, const std::string& split,
                                                 const ImageColumns& columns) {
  return std::make_unique<ParquetImages>(path, split, columns);
}

}  // namespace lockstep
