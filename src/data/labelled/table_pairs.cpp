#include "data/labelled/table_pairs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "data/labelled/text_source.h"
#include "data/lines/progress.h"
#include "formats/parquet_file.h"

namespace lockstep {

namespace {

std::unique_ptr<TextSource> open_pairs(const fs::path& table, const PairColumns& columns) {
  TextSourceOptions options;
  options.columns.wanted = {.text = columns.source, .pair = columns.target, .label = ""};
  options.columns.labels = false;
  options.header = true;
  return open_text_source(table, options);
}

class LineFile {
 public:
  explicit LineFile(const fs::path& path) : path_(path), file_(path, std::ios::binary) {}

  void add(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    file_ << text << '\n';
  }
  void close() {
    file_.close();
    if (!file_) {
      throw MachineError("{}: cannot be written: {}", path_.string(), std::strerror(errno));
    }
  }

 private:
  fs::path path_;
  std::ofstream file_;
};

}  // namespace

PairColumns find_pair_columns(const fs::path& table, const std::string& source_language,
                              const std::string& target_language) {
  const PairColumns members{"translation." + source_language, "translation." + target_language};
  const PairColumns plain{source_language, target_language};
  if (table.extension() != ".parquet") return plain;
  std::vector<std::string> names;
  const std::unique_ptr<ParquetFile> file = open_parquet(table);
  for (const ParquetColumn& column : file->columns()) names.push_back(column.name);
  auto has = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const PairColumns& columns : {members, plain}) {
    if (has(columns.source) && has(columns.target)) return columns;
  }
  DataError error("{}: no columns of {} and {} (it has {})", table.string(), source_language,
                  target_language, join(names, ", "));
  error.set_advice("--source-language and --target-language, as the columns are named");
  throw error;
}

int64_t write_table_pairs(const std::vector<fs::path>& tables, const PairColumns& columns,
                          const ParallelFiles& to) {
  LineFile source(to.source), target(to.target);
  Progress progress("taking pairs", "pairs");
  int64_t pairs = 0;
  for (const fs::path& table : tables) {
    const std::unique_ptr<TextSource> rows = open_pairs(table, columns);
    while (std::optional<TextSource::Block> block = rows->next()) {
      for (TextRow& row : (*block)()) {
        source.add(std::move(row.text));
        target.add(std::move(row.pair));
        ++pairs;
      }
      progress.update(pairs);
    }
  }
  source.close();
  target.close();
  return pairs;
}

}  // namespace lockstep
