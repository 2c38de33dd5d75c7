#include "data/images/flat_labels.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/images/image_names.h"
#include "data/images/picture_list.h"
#include "data/labelled/delimited_text.h"

namespace lockstep {

namespace {

std::optional<int64_t> number_at_end(std::string_view file) {
  std::string stem = fs::path(file).stem().string();
  std::size_t begin = stem.find_last_not_of("0123456789") + 1;
  if (begin == stem.size() || stem.size() - begin > 9) return std::nullopt;
  return std::stoll(stem.substr(begin));
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

}  // namespace

std::string class_of_file_name(const std::string& file) {
  std::string out = fs::path(file).stem().string();
  const auto cut = [&out](const char* characters) {
    out.resize(out.find_last_not_of(characters) + 1);
  };
  cut(" )");
  const std::size_t before = out.size();
  cut("0123456789");
  if (out.size() == before) return "";
  cut(" ._-(");
  return out;
}

FlatLabels FlatLabels::by_file_names() {
  FlatLabels out;
  out.by_file_names_ = true;
  return out;
}

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

std::optional<std::string> FlatLabels::find(const std::string& file) const {
  if (by_file_names_) {
    std::string name = class_of_file_name(file);
    return name.empty() ? std::nullopt : std::optional(std::move(name));
  }
  for (const std::string& name : {file, fs::path(file).stem().string()}) {
    if (auto it = by_name_.find(name); it != by_name_.end()) return it->second;
  }
  std::optional<int64_t> number = number_at_end(file);
  bool listed = number && *number >= 1 && *number <= static_cast<int64_t>(by_number_.size());
  if (!listed) return std::nullopt;
  return by_number_[static_cast<std::size_t>(*number - 1)];
}

std::string FlatLabels::of(const std::string& file) const {
  if (empty()) {
    DataError error("{}: an image without a folder of its class", file);
    std::string advice = "--labels FILE: a csv, or a line \"FILE CLASS\" for each";
    if (const std::string name = class_of_file_name(file); !name.empty()) {
      advice += fmt::format("; --classes-by-name: \"{}\", as the file's name says", name);
    }
    error.set_advice(advice);
    throw error;
  }
  const std::optional<std::string> label = find(file);
  if (label) return *label;
  if (!by_file_names_) throw DataError("{}: no line for {}", path_.string(), file);
  throw DataError("{}: its name says no class: expected one such as cat.0.jpg or cat_17.jpg", file);
}

}  // namespace lockstep
