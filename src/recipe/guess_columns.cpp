#include "recipe/guess_columns.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "data/labelled/delimited_text.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostLabels = 300;  // the most distinct values of a label column
constexpr double kTextWords = 2.5;        // the least mean number of words of a text column

struct ColumnLook {
  double words = 0;              // mean
  std::set<std::string> values;  // up to kMostLabels + 1
  bool first_is_alone = false;   // whether no other row has the first row's value

  bool many() const { return values.size() > kMostLabels; }
};

std::vector<ColumnLook> look_at_columns(const std::vector<TableRow>& rows) {
  std::vector<ColumnLook> out(rows[0].size());
  for (std::size_t c = 0; c < out.size(); ++c) {
    ColumnLook& look = out[c];
    look.first_is_alone = true;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::string& cell = rows[r][c];
      look.words += static_cast<double>(split_words(cell).size());
      if (r > 0 && cell == rows[0][c]) look.first_is_alone = false;
      if (!look.many()) look.values.insert(cell);
    }
    look.words /= static_cast<double>(rows.size());
  }
  return out;
}

// Returns the column with the fewest values among those with few, short and repeated values, or
// looks.size() if there is none.
std::size_t label_of(const std::vector<ColumnLook>& looks, std::size_t rows, std::size_t text) {
  std::size_t best = looks.size(), fewest = std::min(kMostLabels, rows / 3 + 1);
  for (std::size_t c = 0; c < looks.size(); ++c) {
    const std::size_t values = looks[c].values.size();
    if (c == text || looks[c].words > 4 || values < 2 || values > fewest) continue;
    if (values == fewest && best < looks.size()) continue;
    best = c;
    fewest = values;
  }
  return best;
}

}  // namespace

std::optional<GuessedColumns> guess_columns(const std::vector<TableRow>& rows) {
  if (rows.size() < 3 || rows[0].size() < 2) return std::nullopt;
  const std::vector<ColumnLook> looks = look_at_columns(rows);
  std::vector<std::size_t> texts;
  for (std::size_t c = 0; c < looks.size(); ++c) {
    if (looks[c].words >= kTextWords) texts.push_back(c);
  }
  if (texts.empty()) return std::nullopt;
  std::stable_sort(texts.begin(), texts.end(),
                   [&](std::size_t a, std::size_t b) { return looks[a].words > looks[b].words; });
  const std::size_t label = label_of(looks, rows.size(), texts[0]);
  if (label == looks.size()) return std::nullopt;
  std::erase(texts, label);
  // A second text makes a pair unless it is so much shorter that it must be a name or a date.
  const bool pair = texts.size() > 1 && looks[texts[1]].words * 8 >= looks[texts[0]].words &&
                    (looks[texts[1]].many() || looks[texts[1]].values.size() > rows.size() / 4);
  texts.resize(pair ? 2 : 1);
  std::sort(texts.begin(), texts.end());
  GuessedColumns out;
  // A header is recognized by a label that no other row has, while other labels repeat, and by
  // short cells. Columns without a name are others': Kaggle's spam.csv has three.
  out.header = looks[label].first_is_alone && looks[label].values.size() * 3 < rows.size() &&
               !rows[0][label].empty() && !rows[0][texts[0]].empty() &&
               std::all_of(rows[0].begin(), rows[0].end(),
                           [](const std::string& cell) { return split_words(cell).size() <= 3; });
  const auto name = [&](std::size_t c) { return out.header ? rows[0][c] : std::to_string(c + 1); };
  out.columns = {.text = name(texts[0]), .pair = pair ? name(texts[1]) : "", .label = name(label)};
  return out;
}

std::vector<TableRow> first_rows(const fs::path& file, std::size_t most) {
  const fs::path plain = file.extension() == ".gz" ? file.stem() : file.filename();
  std::vector<TableRow> out;
  if (plain.extension() != ".csv" && plain.extension() != ".tsv") return out;
  DelimitedReader reader(file, separation_of(file));
  TableRow row;
  while (out.size() < most && reader.next(row)) {
    if (!out.empty() && row.size() != out[0].size()) break;  // `prepare` reports this error
    out.push_back(row);
  }
  return out;
}

}  // namespace lockstep
