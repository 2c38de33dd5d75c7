#include "data/images/picture_list.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "data/images/image_names.h"
#include "data/labelled/text_source.h"

namespace lockstep {

namespace {

class PictureList : public ImageSource {
 public:
  PictureList(const std::vector<ImageInput>& files, const FlatLabels& labels,
              const ImageColumns& columns)
      : labels_(labels) {
    for (const ImageInput& file : files) {
      if (is_image_name(file.path.filename().string())) {
        pictures_.push_back(file);
      } else {
        read_metadata(file.path, columns);
      }
    }
  }

  std::optional<SourceImage> next() override {
    if (at_ == pictures_.size()) return std::nullopt;
    const ImageInput& picture = pictures_[at_++];
    const std::string file = picture.path.filename().string();
    return SourceImage{picture.split, class_of(picture.path, file), file, picture.path, {}};
  }

 private:
  void read_metadata(const fs::path& path, const ImageColumns& columns) {
    TextSourceOptions options;
    options.columns.wanted = {.text = "file_name", .pair = "", .label = columns.label};
    options.header = true;
    const std::unique_ptr<TextSource> rows = open_text_source(path, options);
    const std::vector<std::string> names = names_of_labels(columns, rows->columns().label);
    while (std::optional<TextSource::Block> block = rows->next()) {
      for (const TextRow& row : (*block)()) {
        if (!row.label) throw DataError("{}: no label", row.place);
        const fs::path picture = (path.parent_path() / row.text).lexically_normal();
        listed_[picture.string()] = class_of_label(*row.label, names, row.place);
      }
    }
  }

  std::string class_of(const fs::path& path, const std::string& file) const {
    if (!listed_.empty()) {
      const auto found = listed_.find(path.lexically_normal().string());
      if (found != listed_.end()) return found->second;
    }
    const std::string folder = path.parent_path().filename().string();
    const bool is_class = split_of_name(folder).empty() && listed_.empty();
    return is_class ? folder : labels_.of(file);
  }

  const FlatLabels& labels_;
  std::vector<ImageInput> pictures_;
  std::map<std::string, std::string> listed_;  // class by path, of metadata
  std::size_t at_ = 0;
};

}  // namespace

std::unique_ptr<ImageSource> open_pictures(const std::vector<ImageInput>& files,
                                           const FlatLabels& labels, const ImageColumns& columns) {
  return std::make_unique<PictureList>(files, labels, columns);
}

std::string class_of_label(const std::string& label, const std::vector<std::string>& names,
                           const std::string& place) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  const bool is_number = error == std::errc() && end == label.data() + label.size();
  std::string name = is_number ? fmt::format("{:04}", number) : label;
  if (is_number && !names.empty()) {
    if (number < 0 || number >= std::ssize(names)) {
      throw DataError("{}: label {} of {} classes", place, number, names.size());
    }
    name = names[static_cast<std::size_t>(number)];
  }
  std::replace(name.begin(), name.end(), '/', '_');  // '/' separates CLASS from FILE
  return name;
}

std::vector<std::string> names_of_labels(const ImageColumns& columns, const std::string& column) {
  const auto found = columns.class_names.find(column);
  return found == columns.class_names.end() ? std::vector<std::string>() : found->second;
}

}  // namespace lockstep
