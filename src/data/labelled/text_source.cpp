#include "data/labelled/text_source.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/labelled/delimited_text.h"
#include "data/labelled/json_text.h"
#include "data/labelled/parquet_text.h"

namespace lockstep {

namespace {

constexpr std::size_t kColumnRows = 256;

bool is_number(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

// Reads separated fields with or without a header.
class DelimitedSource : public TextSource {
 public:
  DelimitedSource(const fs::path& path, const TextSourceOptions& options)
      : path_(path.string()),
        separation_(with_quotes(separation_of(path), options.quotes)),
        reader_(path, separation_) {
    if (!reader_.next(fields_)) throw DataError("{}: it is empty", path_);
    ColumnOptions columns = options.columns;
    TextColumns& wanted = columns.wanted;
    const bool known = columns.languages ? has_known_sides(fields_, *columns.languages)
                                         : has_known_column(fields_);
    if (columns.languages && !known && wanted.text.empty() && !options.header) {
      wanted = first_texts();
    }
    // A number means a column's position even if there is a header, unless it is a name there.
    const bool by_number = is_number(wanted.text) || is_number(wanted.label);
    const bool header = options.header.value_or(known || (!by_number && !wanted.text.empty()));
    header_line_ = header ? reader_.line() : 0;
    width_ = fields_.size();
    if (!header && !by_number) {
      DataError error("{}: no header that names its columns", path_);
      error.set_cause(fmt::format("its first line is \"{}\"", first_fields()));
      error.set_advice(
          "--text 2 --label 1 for the second and the first column, or names with "
          "--header yes");
      throw error;
    }
    const bool as_numbers = by_number && !(header && has_wanted(wanted));
    const std::vector<std::string> names = as_numbers ? numbered_columns(width_) : fields_;
    columns_ = choose_columns(names, columns, path_, options.need_label);
    text_ = column_index(names, columns_.text);
    pair_ = columns_.pair.empty() ? width_ : column_index(names, columns_.pair);
    label_ = columns_.label.empty() ? width_ : column_index(names, columns_.label);
    pending_ = !header;
  }

  std::optional<Block> next() override {
    auto rows = std::make_shared<std::vector<TextRow>>();
    while (rows->size() < kColumnRows && (std::exchange(pending_, false) || advance())) {
      TextRow& row = rows->emplace_back();
      row.text = std::move(fields_[text_]);
      if (pair_ < width_) row.pair = std::move(fields_[pair_]);
      if (label_ < width_) row.label = std::move(fields_[label_]);
      row.place = fmt::format("{}:{}", path_, reader_.line());
    }
    if (rows->empty()) return std::nullopt;
    return [rows] { return std::move(*rows); };
  }

  TextColumns columns() const override { return columns_; }

 private:
  bool advance() {
    if (!reader_.next(fields_)) return false;
    if (fields_.size() == width_) return true;
    throw DataError("{}:{}: {} field{}, expected {} as in {}", path_, reader_.line(),
                    fields_.size(), fields_.size() == 1 ? "" : "s", width_,
                    header_line_ > 0 ? "the header" : "the first line");
  }
  // Returns the numbers of the first two columns that hold no numbers, of a translation without a
  // header.
  TextColumns first_texts() const {
    std::vector<std::string> found;
    for (std::size_t i = 0; i < fields_.size() && found.size() < 2; ++i) {
      if (!is_number(fields_[i])) found.push_back(std::to_string(i + 1));
    }
    if (found.size() == 2) return {.text = found[0], .pair = found[1], .label = ""};
    DataError error("{}: expected source and target in each line, with a {} between them", path_,
                    separation_.name());
    error.set_cause(fmt::format("its first line is \"{}\"", first_fields()));
    throw error;
  }
  bool has_wanted(const TextColumns& wanted) const {
    return std::find(fields_.begin(), fields_.end(), wanted.text) != fields_.end();
  }
  std::string first_fields() const {
    std::string out = join(fields_, " | ");
    return out.size() <= 60 ? out : to_utf8(to_code_points(out).substr(0, 60)) + "...";
  }

  static Separation with_quotes(Separation separation, std::optional<bool> quotes) {
    separation.quotes = quotes.value_or(separation.quotes);
    return separation;
  }

  std::string path_;
  Separation separation_;
  DelimitedReader reader_;
  std::vector<std::string> fields_;
  std::size_t width_ = 0, text_ = 0, pair_ = 0, label_ = 0;  // equal to width_: no such column
  int64_t header_line_ = 0;                                  // 0: no header
  bool pending_ = false;  // fields_ is a row that next() has not returned yet
  TextColumns columns_;
};

// Reads DIR/CLASS/*.txt, where each file is a text.
class FolderTextSource : public TextSource {
 public:
  FolderTextSource(const fs::path& folder, const std::vector<std::string>& classes) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      // "unsup" contains aclImdb's texts without labels.
      if (entry.is_directory() && !name.starts_with(".") && name != "unsup") names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : classes) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        throw DataError("{}: no class \"{}\" (--classes){}", folder.string(), name,
                        did_you_mean(name, names));
      }
    }
    for (const std::string& name : classes.empty() ? names : classes) add_class(folder / name);
    if (files_.empty()) {
      throw DataError("{}: no texts in it: expected CLASS/*.txt", folder.string());
    }
  }

  std::optional<Block> next() override {
    if (files_.empty()) return std::nullopt;
    const std::size_t count = std::min(kColumnRows, files_.size());
    std::vector<fs::path> files(std::make_move_iterator(files_.begin()),
                                std::make_move_iterator(files_.begin() + count));
    files_.erase(files_.begin(), files_.begin() + static_cast<std::ptrdiff_t>(count));
    return [files = std::move(files)] {
      std::vector<TextRow> rows;
      for (const fs::path& file : files) {
        TextRow& row = rows.emplace_back();
        row.text = read_file(file);
        row.label = file.parent_path().filename().string();
        row.place = file.string();
        check_utf8_text(row.text, row.place);
      }
      return rows;
    };
  }

  TextColumns columns() const override { return {}; }
  bool is_folder() const override { return true; }

 private:
  void add_class(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (is_text_name(entry.path().filename().string()) && !entry.is_directory()) {
        files.push_back(entry.path());
      }
    }
    // Files without an ending beside texts with one are notes.
    const auto is_txt = [](const fs::path& file) { return file.extension() == ".txt"; };
    if (std::any_of(files.begin(), files.end(), is_txt)) std::erase_if(files, std::not_fn(is_txt));
    std::sort(files.begin(), files.end());
    if (files.empty()) {
      throw DataError("{}: no text in it: expected files .txt, or without an ending",
                      folder.string());
    }
    files_.insert(files_.end(), files.begin(), files.end());
  }

  std::deque<fs::path> files_;
};

// Returns ".tsv" for "train.tsv.gz".
std::string ending_of(const fs::path& path) {
  return path.extension() == ".gz" ? path.stem().extension().string() : path.extension().string();
}

}  // namespace

void check_utf8_text(std::string_view text, const std::string& place) {
  const std::optional<std::size_t> at = invalid_utf8_at(text);
  if (!at) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + *at, '\n');
  DataError error("{}:{}: byte 0x{:02x} is not valid UTF-8", place, line,
                  static_cast<unsigned char>(text[*at]));
  error.set_advice("iconv -f latin1 -t utf-8 (if the text is Latin-1) and prepare again");
  throw error;
}

bool is_text_table(const fs::path& file) {
  const std::string ending = ending_of(file);
  return ending == ".csv" || ending == ".tsv" || ending == ".jsonl" || ending == ".json" ||
         file.extension() == ".parquet";
}

bool is_text_name(const std::string& file) {
  if (file.empty() || file.starts_with(".")) return false;
  return file.ends_with(".txt") || file.find('.') == std::string::npos;
}

std::unique_ptr<TextSource> open_text_source(const fs::path& path,
                                             const TextSourceOptions& options) {
  if (!fs::exists(path)) throw DataError("{}: no such file or folder", path.string());
  if (fs::is_directory(path)) return std::make_unique<FolderTextSource>(path, options.classes);
  const std::string ending = ending_of(path);
  if (ending == ".csv" || ending == ".tsv" || (ending == ".txt" && options.tabs)) {
    return std::make_unique<DelimitedSource>(path, options);
  }
  if (ending == ".jsonl" || ending == ".json") return open_json_text(path, options);
  if (path.extension() == ".parquet") return open_parquet_text(path, options);
  DataError error(
      "{}: not known how to read it: expected .csv, .tsv, .jsonl, .json, .parquet, an archive or a "
      "folder with CLASS/*.txt",
      path.string());
  if (ending == ".xlsx" || ending == ".xls" || ending == ".ods") {
    error.set_advice("save the sheet as .csv");
  }
  throw error;
}

}  // namespace lockstep
