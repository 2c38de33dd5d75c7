#include "data/labelled/text_columns.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/labelled/language_names.h"

namespace lockstep {

namespace {

using Names = std::vector<std::string>;
using Pair = std::pair<std::string, std::string>;

// The names are tried in this order. Pairs come first, because "sentence" and "question" may be
// single texts too.
const std::vector<Pair> kPairs = {{"sentence1", "sentence2"}, {"premise", "hypothesis"},
                                  {"question1", "question2"}, {"question", "sentence"},
                                  {"question", "passage"},    {"text1", "text2"},
                                  {"text_a", "text_b"},       {"sentence_A", "sentence_B"}};
const std::vector<Pair> kSides = {
    {"source", "target"}, {"src", "tgt"}, {"src", "trg"}, {"source_text", "target_text"}};
const Names kTexts = {"text", "sentence", "review", "content", "comment_text", "tweet", "phrase"};
const Names kLabels = {"label",     "labels",   "class", "target", "gold_label",
                       "sentiment", "category", "stars", "rating"};

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns the first of the known names that exists, as it is written in `names`. Case is ignored.
std::optional<std::string> first_of(const Names& known, const Names& names) {
  for (const std::string& wanted : known) {
    for (const std::string& name : names) {
      if (equals_ignoring_case(name, wanted)) return name;
    }
  }
  return std::nullopt;
}

std::optional<Pair> find_pair(const std::vector<Pair>& known, const Names& names) {
  for (const auto& [text, pair] : known) {
    const auto first = first_of({text}, names), second = first_of({pair}, names);
    if (first && second) return Pair(*first, *second);
  }
  return std::nullopt;
}

// Returns the columns that are named as languages, if there are two.
std::optional<Pair> two_languages(const Names& names, const std::string& source) {
  Names found;
  for (const std::string& name : names) {
    const std::string language = language_of_column(name);
    // A line of pairs without a header may be "red" and "rot".
    const bool short_code = language.substr(0, language.find_first_of("-_")).size() == 2;
    if (short_code && is_language_name(language)) found.push_back(name);
  }
  if (found.size() > 2) std::erase(found, "id");  // a number here, rather than Indonesian
  if (found.size() != 2) return std::nullopt;
  const auto is = [](const std::string& column, const std::string& language) {
    return equals_ignoring_case(language_of_column(column), language);
  };
  const bool second = source.empty() ? is(found[1], "en") : is(found[1], source);
  if (!source.empty() && !second && !is(found[0], source)) return std::nullopt;
  return second ? Pair(found[1], found[0]) : Pair(found[0], found[1]);
}

[[noreturn]] void fail(const Names& names, const std::string& source, const std::string& what,
                       const std::string& advice) {
  DataError error("{}: {} (it has {})", source, what, join(names, ", "));
  error.set_advice(advice);
  throw error;
}

void need(const std::string& column, const char* option, const Names& names,
          const std::string& source) {
  if (column.empty() || contains(names, column)) return;
  throw DataError("{}: no column \"{}\" ({}){}; it has {}", source, column, option,
                  did_you_mean(column, names), join(names, ", "));
}

void check_distinct(const Names& names, const std::string& source) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (names[i] == names[j] && !names[i].empty()) {
        throw DataError("{}: the columns {} and {} are both named \"{}\"", source, j + 1, i + 1,
                        names[i]);
      }
    }
  }
}

// The columns of a translation.
TextColumns choose_sides(const Names& names, const ColumnOptions& options,
                         const std::string& source) {
  TextColumns out = options.wanted;
  need(out.text, "--source-column", names, source);
  need(out.pair, "--target-column", names, source);
  if (!out.text.empty() && !out.pair.empty()) return out;
  if (out.text.empty() != out.pair.empty()) {
    throw ConfigError("expected --source-column and --target-column, both or none");
  }
  const std::optional<Pair> sides = find_sides(names, *options.languages);
  if (!sides) {
    fail(names, source, "which columns are source and target?",
         "--source-column COLUMN --target-column COLUMN, or --source-language and "
         "--target-language, if the columns are named so");
  }
  std::tie(out.text, out.pair) = *sides;
  return out;
}

}  // namespace

std::optional<Pair> find_sides(const Names& names, const LanguagePair& languages) {
  const auto& [source, target] = languages;
  std::vector<Pair> known = kSides;
  if (!source.empty() && !target.empty()) {
    known.insert(known.begin(),
                 {{"translation." + source, "translation." + target}, {source, target}});
  } else if (std::optional<Pair> found = two_languages(names, source)) {
    return found;
  }
  return find_pair(known, names);
}

bool has_known_sides(const Names& names, const LanguagePair& languages) {
  return find_sides(names, languages) || find_sides(names, {});
}

bool has_known_column(const Names& names) {
  return first_of(kTexts, names) || first_of(kLabels, names) || find_pair(kPairs, names);
}

TextColumns choose_columns(const Names& names, const ColumnOptions& options,
                           const std::string& source, bool need_label) {
  check_distinct(names, source);
  if (options.languages) return choose_sides(names, options, source);
  TextColumns out = options.wanted;
  need(out.text, "--text", names, source);
  need(out.pair, "--pair", names, source);
  if (out.text.empty()) {
    if (const auto pair = find_pair(kPairs, names); pair && out.pair.empty()) {
      std::tie(out.text, out.pair) = *pair;
    } else {
      out.text = first_of(kTexts, names).value_or("");
    }
    if (out.text.empty()) fail(names, source, "which column is the text?", "--text COLUMN");
  }
  if (!options.labels) {
    out.label.clear();
  } else if (out.label.empty()) {
    Names known = kLabels;
    if (options.values) known.emplace_back("score");
    out.label = first_of(known, names).value_or("");
    if (out.label.empty() && need_label) {
      fail(names, source, "which column is the label?", "--label COLUMN, or --label none");
    }
  } else if (!contains(names, out.label)) {
    if (need_label) need(out.label, "--label", names, source);
    out.label.clear();
  }
  return out;
}

std::size_t column_index(const Names& names, const std::string& column) {
  return static_cast<std::size_t>(std::find(names.begin(), names.end(), column) - names.begin());
}

Names numbered_columns(std::size_t count) {
  Names out;
  for (std::size_t i = 1; i <= count; ++i) out.push_back(std::to_string(i));
  return out;
}

}  // namespace lockstep
