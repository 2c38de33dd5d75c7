#include "data/images/parquet_images.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/text.h"
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
  ParquetImages(const fs::path& path, std::string split)
      : path_(path), split_(std::move(split)), file_(open_parquet(path)) {
    const std::vector<ParquetColumn>& columns = file_->columns();
    auto need = [&](auto matches, const char* what) {
      const auto found = std::find_if(columns.begin(), columns.end(), matches);
      if (found != columns.end()) return static_cast<int>(found - columns.begin());
      std::vector<std::string> names;
      for (const ParquetColumn& column : columns) names.push_back(column.name + ": " + column.type);
      throw DataError("{}: no column {} ({})", path_.string(), what, join(names, ", "));
    };
    wanted_ = {need(is_image, "of images"), need(is_label, "\"label\"")};
    classes_ = parquet_class_names(*file_, columns[wanted_[1]].name);
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
                       .class_name = class_of(*label, place),
                       .file = fmt::format("{}-{:08}.{}", path_.stem().string(), row_,
                                           bytes->starts_with("\x89PNG") ? "png" : "jpg"),
                       .bytes = {begin, begin + bytes->size()}};
  }

 private:
  std::string class_of(const std::string& label, const std::string& place) const {
    int64_t number = 0;
    auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
    const bool is_number = error == std::errc() && end == label.data() + label.size();
    std::string name = is_number ? fmt::format("{:04}", number) : label;
    if (is_number && !classes_.empty()) {
      if (number < 0 || number >= std::ssize(classes_)) {
        throw DataError("{}: label {} of {} classes", place, number, classes_.size());
      }
      name = classes_[static_cast<std::size_t>(number)];
    }
    std::replace(name.begin(), name.end(), '/', '_');  // '/' separates CLASS from FILE
    return name;
  }

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

std::unique_ptr<ImageSource> open_parquet_images(const fs::path& path, const std::string& split) {
  return std::make_unique<ParquetImages>(path, split);
}

}  // namespace lockstep
