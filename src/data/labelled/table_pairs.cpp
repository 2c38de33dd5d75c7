#include "data/labelled/table_pairs.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <optional>

#include "base/output_file.h"
#include "data/labelled/text_source.h"
#include "data/lines/progress.h"

namespace lockstep {

namespace {

std::unique_ptr<TextSource> open_pairs(const fs::path& table, const PairOptions& pairs) {
  TextSourceOptions options;
  options.columns.wanted = pairs.columns;
  options.columns.languages = pairs.languages;
  options.header = pairs.header;
  options.tabs = true;
  return open_text_source(table, options);
}

class LineFile {
 public:
  explicit LineFile(const fs::path& path) : path_(path), file_(path, std::ios::binary) {
    if (!file_) throw write_failure(path_, errno);
  }

  void add(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    if (!(file_ << text << '\n')) throw write_failure(path_, errno);
  }
  void close() {
    file_.close();
    if (!file_) throw write_failure(path_, errno);
  }

 private:
  fs::path path_;
  std::ofstream file_;
};

}  // namespace

TablePairs write_table_pairs(const std::vector<fs::path>& tables, const PairOptions& options,
                             const ParallelFiles& to) {
  LineFile source(to.source), target(to.target);
  Progress progress("taking pairs", "pairs");
  PairOptions wanted = options;
  TablePairs out;
  for (const fs::path& table : tables) {
    const std::unique_ptr<TextSource> rows = open_pairs(table, wanted);
    wanted.columns = out.columns = rows->columns();
    while (std::optional<TextSource::Block> block = rows->next()) {
      for (TextRow& row : (*block)()) {
        source.add(std::move(row.text));
        target.add(std::move(row.pair));
        ++out.pairs;
      }
      progress.update(out.pairs);
    }
  }
  source.close();
  target.close();
  return out;
}

}  // namespace lockstep
