#include "data/labelled/parquet_text.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace lockstep {

namespace {

void check_text(const std::optional<std::string>& cell, const std::string& column,
                const std::string& place) {
  if (!cell) throw DataError("{}: \"{}\" is null", place, column);
  check_utf8_text(*cell, fmt::format("{}: \"{}\"", place, column));
}

class ParquetText : public TextSource {
 public:
  ParquetText(const fs::path& path, const TextSourceOptions& options)
      : path_(path.string()), file_(open_parquet(path)) {
    std::vector<std::string> names;
    for (const ParquetColumn& column : file_->columns()) names.push_back(column.name);
    columns_ = choose_columns(names, options.columns, path_, options.need_label);
    auto use = [&](const std::string& name) {
      wanted_.push_back(static_cast<int>(column_index(names, name)));
      return file_->columns()[wanted_.back()];
    };
    for (const std::string& name : {columns_.text, columns_.pair}) {
      if (name.empty()) continue;
      const ParquetColumn column = use(name);
      if (column.kind != ParquetKind::kText) {
        throw DataError("{}: column \"{}\" is of type {}, expected string", path_, name,
                        column.type);
      }
    }
    if (!columns_.label.empty()) {
      use(columns_.label);
      class_names_ = parquet_class_names(*file_, columns_.label);
    }
  }

  std::optional<Block> next() override {
    auto cells = std::make_shared<std::vector<ParquetCells>>();
    if (!file_->next(wanted_, *cells)) return std::nullopt;
    const int64_t first = row_ + 1;
    row_ += std::ssize((*cells)[0].values);
    return [this, cells, first] { return rows(*cells, first); };
  }

  TextColumns columns() const override { return columns_; }
  std::vector<std::string> class_names() const override { return class_names_; }

 private:
  std::vector<TextRow> rows(std::vector<ParquetCells>& cells, int64_t first) const {
    std::vector<TextRow> out(cells[0].values.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      TextRow& row = out[i];
      row.place = fmt::format("{}: row {}", path_, first + static_cast<int64_t>(i));
      std::size_t column = 0;
      check_text(cells[column].values[i], columns_.text, row.place);
      row.text = std::move(*cells[column++].values[i]);
      if (!columns_.pair.empty()) {
        check_text(cells[column].values[i], columns_.pair, row.place);
        row.pair = std::move(*cells[column++].values[i]);
      }
      if (!columns_.label.empty()) row.label = std::move(cells[column].values[i]);
    }
    return out;
  }

  std::string path_;
  std::unique_ptr<ParquetFile> file_;
  TextColumns columns_;
  std::vector<int> wanted_;  // text, pair and label, as far as they exist
  std::vector<std::string> class_names_;
  int64_t row_ = 0;
};

}  // namespace

std::vector<std::string> parquet_class_names(const ParquetFile& file, const std::string& column) {
  const std::optional<std::string> text = file.metadata("huggingface");
  if (!text) return {};
  try {
    const auto json = nlohmann::json::parse(*text);
    const auto& feature = json.at("info").at("features").at(column);
    if (!feature.contains("names")) return {};
    return feature.at("names").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    return {};  // other metadata: labels stay as they are
  }
}

std::unique_ptr<TextSource> open_parquet_text(const fs::path& path,
                                              const TextSourceOptions& options) {
  return std::make_unique<ParquetText>(path, options);
}

}  // namespace lockstep
