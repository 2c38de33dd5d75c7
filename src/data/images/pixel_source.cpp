#include "data/images/pixel_source.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/fetch/archive_entries.h"
#include "data/images/picture_list.h"
#include "data/labelled/text_inputs.h"
#include "formats/pixel_arrays.h"

namespace lockstep {

namespace {

enum class PixelForm { kIdx, kNumpy, kRecords10, kRecords100, kPickle10, kPickle100, kTable };

// What a file is by its name.
struct PixelPart {
  PixelForm form;
  std::string split;     // empty: labels or names of classes, not images
  std::string key = "";  // of IDX and NumPy's files: what images and their labels have in common
};

struct PixelFile {
  PixelPart part;
  std::string folder, name, place;  // in an archive too; `place` is for messages
  std::function<std::string()> read;
};

constexpr int64_t kLongestLine = 1 << 20;
constexpr int64_t kLookedAt = 200;  // files of an archive, before it is taken for another
constexpr int64_t kPictures = 20;   // pictures beside arrays that may show what is in them
constexpr int kLevels = 2;

std::string without_compression(std::string name) {
  for (const char* ending : {".gz", ".xz", ".bz2", ".zst"}) {
    if (name.ends_with(ending)) return name.substr(0, name.rfind('.'));
  }
  return name;
}

// Returns the name without compression, and of IDX files with a "-" where copies have a ".".
std::string plain_name(const std::string& file) {
  static const std::regex kPoint("\\.idx([13])-ubyte$");
  return std::regex_replace(without_compression(lower_ascii(file)), kPoint, "-idx$1-ubyte");
}

// Returns what a file of that name may be; nothing for others. Of tables it depends on the content.
std::optional<PixelPart> part_of(const std::string& file) {
  static const std::regex kImages("(.*)images-idx3-ubyte");
  static const std::regex kLabels("(.*)labels-idx1-ubyte");
  static const std::regex kArray("x_(train|val|test)\\.npy|(train|val|test)_images\\.npy");
  static const std::regex kNumbers("y_(train|val|test)\\.npy|(train|val|test)_labels\\.npy");
  static const std::regex kBatch("(data_batch_[0-9]+|test_batch)(\\.bin)?");
  static const std::map<std::string, PixelPart> kNames = {
      {"batches.meta.txt", {PixelForm::kRecords10, ""}},
      {"batches.meta", {PixelForm::kPickle10, ""}},
      {"train.bin", {PixelForm::kRecords100, "train"}},
      {"test.bin", {PixelForm::kRecords100, "test"}},
      {"fine_label_names.txt", {PixelForm::kRecords100, ""}},
      {"train", {PixelForm::kPickle100, "train"}},
      {"test", {PixelForm::kPickle100, "test"}},
      {"meta", {PixelForm::kPickle100, ""}}};
  const std::string name = plain_name(file);
  if (const auto found = kNames.find(name); found != kNames.end()) return found->second;
  std::smatch match;
  if (std::regex_match(name, match, kImages)) {
    const std::string key = match[1];
    const bool test =
        key.find("t10k") != std::string::npos || key.find("test") != std::string::npos;
    return PixelPart{PixelForm::kIdx, test ? "test" : "train", key};
  }
  if (std::regex_match(name, match, kLabels)) return PixelPart{PixelForm::kIdx, "", match[1]};
  const auto split_in = [&] { return match[match[1].matched ? 1 : 2].str(); };
  if (std::regex_match(name, match, kArray)) {
    return PixelPart{PixelForm::kNumpy, split_in(), split_in()};
  }
  if (std::regex_match(name, match, kNumbers)) return PixelPart{PixelForm::kNumpy, "", split_in()};
  if (std::regex_match(name, match, kBatch)) {
    return PixelPart{match[2].matched ? PixelForm::kRecords10 : PixelForm::kPickle10,
                     name.starts_with("test") ? "test" : "train"};
  }
  if (!name.ends_with(".csv")) return std::nullopt;
  const std::string split = text_split_of_name(name);
  return PixelPart{PixelForm::kTable,
                   split == "validation" ? "val" : (split == "test" ? "test" : "train")};
}

std::string read_pixel_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return without_compression(name) == name ? read_file(path) : read_compressed_file(path);
}

bool begins_as_table(const fs::path& path) {
  if (path.extension() != ".csv") return is_pixel_table(read_compressed_file(path));
  std::ifstream file(path, std::ios::binary);
  std::string line(kLongestLine, '\0');
  file.read(line.data(), kLongestLine);
  line.resize(static_cast<std::size_t>(file.gcount()));
  return is_pixel_table(line);
}

// Files are also given once more in folders of their own names.
std::string folder_of(const fs::path& path) {
  const fs::path folder = path.parent_path();
  const bool its_own = folder.filename() == path.filename() || folder.filename() == path.stem();
  return (its_own ? folder.parent_path() : folder).string();
}

// Collects the files of a folder and of those below it. A folder of pictures has no arrays.
void collect(const fs::path& folder, int levels, std::vector<PixelFile>& out) {
  int64_t pictures = 0;
  std::vector<fs::path> below;
  std::vector<PixelFile> here;
  for (const auto& entry :
       fs::directory_iterator(folder, fs::directory_options::skip_permission_denied)) {
    const fs::path& path = entry.path();
    const std::string name = path.filename().string();
    if (is_image_name(name) && ++pictures > kPictures) return;
    if (entry.is_directory()) {
      if (!name.starts_with(".")) below.push_back(path);
      continue;
    }
    const std::optional<PixelPart> part = part_of(name);
    if (!part || !entry.is_regular_file()) continue;
    if (part->form == PixelForm::kTable && !begins_as_table(path)) continue;
    here.push_back(
        {*part, folder_of(path), name, path.string(), [path] { return read_pixel_file(path); }});
  }
  std::move(here.begin(), here.end(), std::back_inserter(out));
  if (levels == 0) return;
  for (const fs::path& child : below) collect(child, levels - 1, out);
}

// Returns the files of an archive; none when it begins as one of pictures.
std::vector<PixelFile> collect_archived(const fs::path& archive) {
  std::vector<PixelFile> out;
  ArchiveEntries entries(archive);
  int64_t others = 0, pictures = 0;
  while (const std::optional<std::string> entry = entries.next()) {
    const fs::path path = *entry;
    const std::string name = path.filename().string();
    const std::optional<PixelPart> part = part_of(name);
    if (!part) {
      pictures += is_image_name(name) ? 1 : 0;
      const bool other = is_archive_name(name) || pictures > kPictures || ++others > kLookedAt;
      if (out.empty() && other) return {};
      continue;
    }
    const std::string place = archive.string() + ": " + *entry;
    const std::vector<std::byte> bytes = entries.read();
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (without_compression(name) != name) text = decompressed(bytes, place);
    if (part->form == PixelForm::kTable && !is_pixel_table(text)) continue;
    auto content = std::make_shared<std::string>(std::move(text));
    out.push_back({*part, folder_of(path), name, place, [content] { return std::move(*content); }});
  }
  return out;
}

// Throws for one file of a set of several, where its name tells.
void check_no_part_of_more(const fs::path& file, PixelForm form) {
  const bool tells =
      form == PixelForm::kIdx || form == PixelForm::kRecords10 || form == PixelForm::kPickle10;
  if (!tells || !fs::is_regular_file(file)) return;
  DataError error("{}: one file of a set of several", file.string());
  error.set_advice("their folder: " + fs::absolute(file).parent_path().string());
  throw error;
}

// The files of one set in one folder, by their names.
class PixelFiles {
 public:
  void add(PixelFile&& file) {
    // A file that is there both plain and compressed counts once.
    std::string name = plain_name(file.name);
    by_name_.try_emplace(std::move(name), std::move(file));
  }

  // Returns whether images are among them. CIFAR-100's names alone say nothing.
  bool whole() const {
    const auto needs = [&](PixelForm form, const char* names) {
      return form_of_images() != form || by_name_.contains(names);
    };
    return form_of_images() && needs(PixelForm::kRecords100, "fine_label_names.txt") &&
           needs(PixelForm::kPickle100, "meta");
  }

  // Reads the images, those to train on first, by split.
  std::vector<std::pair<std::string, PixelArray>> read(const std::string& label) const {
    check_one_set();
    std::vector<std::pair<std::string, PixelArray>> out;
    for (const std::string_view wanted : {"train", "val", "test"}) {
      for (const auto& [name, file] : by_name_) {
        if (file.part.split != wanted) continue;
        PixelArray array = read(file, label);
        if (array.images > 0 && array.height * array.width == 0) {
          throw DataError("{}: its images have {} x {} pixels", file.place, array.height,
                          array.width);
        }
        if (array.labels.empty() && array.images > 0) {
          log_warning("{}: passed over: it has no labels", file.place);
        } else {
          out.emplace_back(file.part.split, std::move(array));
        }
      }
    }
    return out;
  }

  // Returns the classes' names in the order of their numbers; none when the set has none.
  std::vector<std::string> class_names() const {
    for (const auto& [name, file] : by_name_) {
      const bool labels = file.part.form == PixelForm::kIdx || file.part.form == PixelForm::kNumpy;
      if (!file.part.split.empty() || labels) continue;
      const std::string text = file.read();
      if (!name.ends_with(".txt")) return read_cifar_names(text, file.place);
      std::vector<std::string> out;
      for (const std::string& line : split(text, '\n')) {
        if (!trim(line).empty()) out.emplace_back(trim(line));
      }
      return out;
    }
    return {};
  }

 private:
  std::optional<PixelForm> form_of_images() const {
    for (const auto& [name, file] : by_name_) {
      if (!file.part.split.empty()) return file.part.form;
    }
    return std::nullopt;
  }

  void check_one_set() const {
    std::map<std::string, std::string> keys;  // by split
    for (const auto& [name, file] : by_name_) {
      if (file.part.split.empty()) continue;
      const auto [known, added] = keys.try_emplace(file.part.split, file.part.key);
      if (file.part.form == form_of_images() && known->second == file.part.key) continue;
      DataError error("{}: more than one set of images for {}", file.folder, file.part.split);
      error.set_advice("a folder with the files of one");
      throw error;
    }
  }

  PixelArray read(const PixelFile& file, const std::string& label) const {
    switch (file.part.form) {
      case PixelForm::kIdx:
      case PixelForm::kNumpy:
        break;
      case PixelForm::kRecords10:
        return read_cifar_records(file.read(), 1, file.place);
      case PixelForm::kRecords100:
        return read_cifar_records(file.read(), 2, file.place);
      case PixelForm::kPickle10:
      case PixelForm::kPickle100:
        return read_cifar_pickle(file.read(), file.place);
      case PixelForm::kTable:
        return read_pixel_table(file.read(), label, file.place);
    }
    return read_labelled(file);
  }

  // Reads images, and their labels in another file.
  PixelArray read_labelled(const PixelFile& file) const {
    const bool idx = file.part.form == PixelForm::kIdx;
    const std::string bytes = file.read();
    PixelArray out = idx ? read_idx_images(bytes, file.place) : read_npy_images(bytes, file.place);
    for (const auto& [name, other] : by_name_) {
      if (!other.part.split.empty() || other.part.key != file.part.key) continue;
      const std::string labels = other.read();
      out.labels =
          idx ? read_idx_labels(labels, other.place) : read_npy_labels(labels, other.place);
      if (std::ssize(out.labels) == out.images) return out;
      throw DataError("{}: {} labels, but {} has {} images", other.place, out.labels.size(),
                      file.name, out.images);
    }
    const std::string& key = file.part.key;
    throw DataError(
        "{}: its labels are missing: no {} beside it", file.place,
        idx ? key + "labels-idx1-ubyte" : fmt::format("y_{0}.npy or {0}_labels.npy", key));
  }

  std::map<std::string, PixelFile> by_name_;
};

// Returns a name for each number, of equal length, so that they sort; none where a label is a word.
std::vector<std::string> numbers_as_names(
    const std::vector<std::pair<std::string, PixelArray>>& arrays) {
  std::size_t largest = 0;
  for (const auto& [split, array] : arrays) {
    for (const std::string& label : array.labels) {
      const bool number = !label.empty() && label.size() <= 6 &&
                          label.find_first_not_of("0123456789") == std::string::npos;
      if (!number) return {};
      largest = std::max<std::size_t>(largest, std::stoul(label));
    }
  }
  std::vector<std::string> out;
  const std::size_t width = std::to_string(largest).size();
  for (std::size_t i = 0; i <= largest; ++i) out.push_back(fmt::format("{:0{}}", i, width));
  return out;
}

class PixelSource : public ImageSource {
 public:
  PixelSource(const PixelFiles& files, const std::string& label, std::string place)
      : place_(std::move(place)), classes_(files.class_names()) {
    std::vector<std::pair<std::string, PixelArray>> read = files.read(label);
    if (classes_.empty()) classes_ = numbers_as_names(read);
    for (auto& [split, array] : read) {
      arrays_.push_back({split, std::make_shared<PixelArray>(std::move(array))});
    }
  }

  std::optional<SourceImage> next() override {
    while (at_ < arrays_.size() && image_ == arrays_[at_].second->images) {
      arrays_[at_++].second.reset();
      image_ = 0;
    }
    if (at_ == arrays_.size()) return std::nullopt;
    const auto& [split, array] = arrays_[at_];
    if (split != split_) number_ = 0;
    split_ = split;
    const std::string& label = array->labels[static_cast<std::size_t>(image_)];
    const std::string place = fmt::format("{}: {} image {}", place_, split, ++number_);
    if (label.empty()) throw DataError("{}: no label", place);
    return SourceImage{.split = split,
                       .class_name = class_of_label(label, classes_, place),
                       .file = fmt::format("{}-{:06}.png", split, number_),
                       .array = array,
                       .number = image_++};
  }

 private:
  std::string place_, split_;
  std::vector<std::string> classes_;
  std::vector<std::pair<std::string, std::shared_ptr<PixelArray>>> arrays_;  // by split
  std::size_t at_ = 0;
  int64_t image_ = 0, number_ = 0;  // in the array, in the split
};

}  // namespace

std::unique_ptr<ImageSource> open_pixel_source(const fs::path& input, const std::string& label) {
  std::vector<PixelFile> files;
  if (fs::is_directory(input)) {
    collect(input, kLevels, files);
  } else if (is_archive_name(input.filename().string()) || input.extension() == ".npz") {
    files = collect_archived(input);
  } else if (const auto part = part_of(input.filename().string())) {
    check_no_part_of_more(input, part->form);
    if (part->form == PixelForm::kTable && begins_as_table(input)) {
      files.push_back({*part, input.parent_path().string(), input.filename().string(),
                       input.string(), [input] { return read_pixel_file(input); }});
    }
  }
  std::map<std::string, PixelFiles> folders;
  for (PixelFile& file : files) {
    PixelFiles& set = folders[file.folder];
    set.add(std::move(file));
  }
  std::erase_if(folders, [](const auto& folder) { return !folder.second.whole(); });
  if (folders.empty()) return nullptr;
  if (folders.size() > 1) {
    std::vector<std::string> names;
    for (const auto& [name, set] : folders) names.push_back(name);
    DataError error("{}: holds {} sets of images: {}", input.string(), names.size(),
                    join(names, ", "));
    error.set_advice("the folder of one");
    throw error;
  }
  return std::make_unique<PixelSource>(folders.begin()->second, label, input.string());
}

}  // namespace lockstep
