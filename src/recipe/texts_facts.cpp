#include "recipe/texts_facts.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "data/labelled/text_labels.h"
#include "data/labelled/text_source.h"
#include "data/lines/progress.h"
#include "data/tokenize/bert_tokenizer.h"
#include "recipe/guess_columns.h"

namespace lockstep {

namespace {

constexpr std::size_t kGuessRows = 5'000;
constexpr int64_t kTokenised = 4'000;        // the first texts, which are tokenized
constexpr std::size_t kMostClasses = 1'000;  // with more distinct labels they are no classes
constexpr double kTokensOfWord = 1.3;        // English: measured 1.2 to 1.35 on SST-2 and IMDB

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const std::string_view trimmed = trim(text);
  const auto [end, error] = std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), value);
  const bool whole = error == std::errc() && end == trimmed.data() + trimmed.size();
  return whole && !trimmed.empty() ? std::optional(value) : std::nullopt;
}

// Collects the figures of the rows of a split.
class TextCounter {
 public:
  explicit TextCounter(const fs::path& tokenizer) {
    if (!tokenizer.empty()) tokenizer_.emplace(BertTokenizer::load(tokenizer));
  }

  void add(const TextRow& row) {
    const std::vector<std::string_view> words = split_words(row.text);
    const int64_t all = std::ssize(words) + std::ssize(split_words(row.pair));
    if (words.empty()) ++empty_;
    add_letters(row.text);
    add_label(row);
    lengths_.push_back(tokens_of(row, all));
    if (!row.pair.empty()) has_pairs_ = true;
  }

  TextsFacts facts(const fs::path& input, bool wants_values);

 private:
  double tokens_of(const TextRow& row, int64_t words) {
    const double specials = row.pair.empty() ? 2 : 3;
    if (!tokenizer_ || std::ssize(lengths_) >= kTokenised) {
      return specials + ratio() * static_cast<double>(words);
    }
    WordPieceInput out;
    constexpr std::size_t kAll = 1 << 20;
    if (row.pair.empty()) {
      tokenizer_->encode(row.text, out, kAll);
    } else {
      tokenizer_->encode(row.text, row.pair, out, kAll);
    }
    counted_tokens_ += static_cast<double>(out.ids.size()) - specials;
    counted_words_ += static_cast<double>(words);
    return static_cast<double>(out.ids.size());
  }
  double ratio() const {
    return counted_words_ > 0 ? counted_tokens_ / counted_words_ : kTokensOfWord;
  }

  void add_letters(std::string_view text) {
    for (unsigned char c : text) {
      const bool ascii = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      // These are the first bytes of U+00C0 to U+1FFF and U+3000 to U+EFFF. The code points between
      // and after them are quotation marks, dashes and symbols, which English texts contain too.
      const bool other = c >= 0xC3 && c <= 0xEE && c != 0xE2;
      letters_ += ascii || other ? 1 : 0;
      others_ += other ? 1 : 0;
    }
  }

  void add_label(const TextRow& row) {
    if (!row.label || trim(*row.label).empty()) {
      if (without_label_++ == 0) first_without_ = row.place;
      return;
    }
    if (labels_.size() <= kMostClasses) ++labels_[*row.label];
    const std::optional<double> value = number_in(*row.label);
    if (!value) {
      all_numbers_ = false;
    } else {
      least_ = labelled_ == 0 ? *value : std::min(least_, *value);
      largest_ = labelled_ == 0 ? *value : std::max(largest_, *value);
    }
    ++labelled_;
  }

  std::optional<BertTokenizer> tokenizer_;
  std::vector<double> lengths_;
  double counted_tokens_ = 0, counted_words_ = 0;
  int64_t letters_ = 0, others_ = 0, empty_ = 0, labelled_ = 0, without_label_ = 0;
  std::string first_without_;
  std::map<std::string, int64_t> labels_;
  bool has_pairs_ = false, all_numbers_ = true;
  double least_ = 0, largest_ = 0;
};

TextsFacts TextCounter::facts(const fs::path& input, bool wants_values) {
  if (lengths_.empty()) throw DataError("{}: no texts in it", input.string());
  if (without_label_ > 0) {
    DataError error("{}: no label", first_without_);
    error.set_cause(fmt::format("{} of {} texts of train have none", with_commas(without_label_),
                                with_commas(std::ssize(lengths_))));
    error.set_advice("--label COLUMN, if another column has them");
    throw error;
  }
  TextsFacts out;
  out.texts = std::ssize(lengths_);
  out.pairs = has_pairs_;
  out.empty = empty_;
  out.counted_tokens = tokenizer_.has_value();
  double sum = 0;
  for (double length : lengths_) sum += length;
  out.mean_tokens = sum / static_cast<double>(out.texts);
  const auto at = lengths_.begin() + (std::ssize(lengths_) - 1) * 99 / 100;
  std::nth_element(lengths_.begin(), at, lengths_.end());
  out.long_tokens = static_cast<int64_t>(*at);
  out.other_letters = letters_ == 0 ? 0 : static_cast<double>(others_) / letters_;
  if (labels_.size() == 1 && !wants_values) {
    DataError error("{}: all {} texts have the label \"{}\"", input.string(),
                    with_commas(out.texts), labels_.begin()->first);
    error.set_cause("a classifier needs two classes or more");
    throw error;
  }
  if (wants_values) {
    if (!all_numbers_)
      throw DataError("{}: --regression, but not all labels are numbers", input.string());
    out.least_value = least_;
    out.largest_value = largest_;
    return out;
  }
  if (labels_.size() > kMostClasses || std::ssize(labels_) * 3 > std::max<int64_t>(10, out.texts)) {
    DataError error(
        "{}: {} different labels for {} texts", input.string(),
        labels_.size() > kMostClasses ? "more than 1,000" : with_commas(std::ssize(labels_)),
        with_commas(out.texts));
    error.set_advice(all_numbers_ ? "--regression, if numbers are to be predicted; else --label"
                                  : "--label COLUMN: is it another one?");
    throw error;
  }
  out.classes.assign(labels_.begin(), labels_.end());
  return out;
}

std::unique_ptr<TextSource> open_by(const fs::path& file, const TextsInput& input,
                                    const TextColumns& columns, bool need_label) {
  ColumnOptions options{.wanted = columns, .labels = true, .values = input.values};
  return open_text_source(
      file, {.columns = options, .header = {}, .quotes = {}, .need_label = need_label});
}

// Determines the columns of the first file: those that the user names, known names, or else guessed
// ones.
void find_columns(const fs::path& file, const TextsInput& input, TextsReading& out) {
  try {
    out.columns = open_by(file, input, input.columns, true)->columns();
  } catch (const DataError&) {
    const TextColumns& named = input.columns;
    if (!named.text.empty() || !named.label.empty() || !fs::is_regular_file(file)) throw;
    const std::optional<GuessedColumns> guess = guess_columns(first_rows(file, kGuessRows));
    if (!guess) throw;
    out.columns = guess->columns;
    if (!named.pair.empty()) out.columns.pair = named.pair;
    out.guessed = true;
  }
}

template <class Visit>
void for_each_text(const TextSplitInput& split, const TextsInput& input, const TextColumns& columns,
                   const Visit& visit) {
  Progress progress("reading " + split.name, "texts");
  int64_t read = 0;
  for (const fs::path& file : split.files) {
    const auto source = open_by(file, input, columns, split.name != "test");
    while (std::optional<TextSource::Block> block = source->next()) {
      for (const TextRow& row : (*block)()) {
        visit(row);
        progress.show(++read);
      }
    }
  }
}

// Returns classes.txt or labels.txt beside the data if it has as many names as there are classes
// and the classes are numbered from 0.
std::string find_classes_file(const fs::path& data, const TextsFacts& facts) {
  const auto count = std::ssize(facts.classes);
  for (int64_t i = 0; i < count; ++i) {
    const auto named = [&](const auto& one) { return one.first == std::to_string(i); };
    if (std::none_of(facts.classes.begin(), facts.classes.end(), named)) return "";
  }
  const fs::path folder = fs::is_directory(data) ? data : data.parent_path();
  for (const char* name : {"classes.txt", "labels.txt"}) {
    const fs::path file = folder / name;
    if (!fs::is_regular_file(file)) continue;
    const std::vector<std::string> lines = read_lines(file);
    const auto named = std::count_if(lines.begin(), lines.end(),
                                     [](const auto& line) { return !trim(line).empty(); });
    if (named == count) return file.string();
  }
  return "";
}

TextsFound read_facts(const TextsInput& input, std::vector<TextSplitInput> splits,
                      const fs::path& tokenizer) {
  TextsFound out;
  TextsReading& reading = out.reading;
  reading.splits = std::move(splits);
  if (reading.splits[0].name != "train") {
    throw DataError("{}: no train split ({} is there)", input.data.string(),
                    reading.splits[0].name);
  }
  find_columns(reading.splits[0].files[0], input, reading);
  TextCounter counter(tokenizer);
  for_each_text(reading.splits[0], input, reading.columns,
                [&](const TextRow& row) { counter.add(row); });
  out.facts = counter.facts(input.data, input.values);
  for (const TextSplitInput& split : reading.splits) {
    int64_t texts = 0, labelled = 0;
    if (split.name != "validation" && split.name != "test") continue;
    for_each_text(split, input, reading.columns, [&](const TextRow& row) {
      ++texts;
      labelled += row.label && !is_no_label(*row.label) ? 1 : 0;
    });
    if (split.name == "validation") out.facts.validation = texts;
    if (split.name == "test") out.facts.labelled_test = texts > 0 && labelled == texts;
  }
  reading.classes_file = find_classes_file(input.data, out.facts);
  return out;
}

}  // namespace

TextsFound read_texts_facts(const TextsInput& input, const fs::path& tokenizer) {
  return TextInputs(input.data).read([&](const auto& splits) {
    return read_facts(input, splits, tokenizer);
  });
}

TextsFacts texts_facts(const TextManifest& manifest) {
  const TextSplitRecord* train = manifest.find_split("train");
  if (train == nullptr || !train->labelled || manifest.label_kind == LabelKind::kNone) {
    throw DataError("the prepared texts have no labelled train split");
  }
  TextsFacts out;
  out.prepared = true;
  out.vocabulary = manifest.tokenizer.vocab_size;
  out.texts = train->examples;
  for (std::size_t i = 0; i < manifest.classes.size(); ++i) {
    out.classes.emplace_back(manifest.classes[i], train->class_counts.at(i));
  }
  if (manifest.label_kind == LabelKind::kValue) {
    out.least_value = train->values.at("min");
    out.largest_value = train->values.at("max");
  } else if (out.classes.size() < 2) {
    throw DataError("the prepared texts are all of one class, \"{}\"",
                    out.classes.empty() ? "" : out.classes[0].first);
  }
  out.pairs = !manifest.columns.pair.empty();
  out.counted_tokens = true;
  out.mean_tokens = train->lengths.at("mean");
  out.long_tokens = static_cast<int64_t>(train->lengths.at("p99"));
  const TextSplitRecord* validation = manifest.find_split("validation");
  out.validation = validation == nullptr ? 0 : validation->examples;
  const TextSplitRecord* test = manifest.find_split("test");
  out.labelled_test = test != nullptr && test->labelled;
  return out;
}

namespace {

std::string describe_classes_of(const TextsFacts& facts) {
  if (facts.values()) {
    return fmt::format("labels are numbers from {:g} to {:g}", facts.least_value,
                       facts.largest_value);
  }
  std::vector<std::string> some;
  constexpr std::size_t kShown = 6;
  for (std::size_t i = 0; i < std::min(kShown, facts.classes.size()); ++i) {
    some.push_back(
        fmt::format("{} {}", facts.classes[i].first, with_commas(facts.classes[i].second)));
  }
  if (facts.classes.size() > kShown) some.emplace_back("...");
  return fmt::format("{} classes: {}", facts.classes.size(), join(some, ", "));
}

}  // namespace

std::vector<std::string> describe_texts(const TextsFacts& facts, const TextsReading& reading) {
  std::vector<std::string> out;
  out.push_back(
      fmt::format("{} {} of {:.0f} tokens{}, 99 of 100 have at most {}", with_commas(facts.texts),
                  facts.pairs ? "pairs of texts" : "texts", facts.mean_tokens,
                  facts.counted_tokens ? "" : " (estimated from words)", facts.long_tokens));
  out.push_back(describe_classes_of(facts));
  if (!reading.columns.text.empty()) {
    out.push_back(fmt::format(
        "columns: text {}{}, label {}{}", reading.columns.text,
        reading.columns.pair.empty() ? "" : ", pair " + reading.columns.pair, reading.columns.label,
        reading.guessed ? " (guessed; --text, --pair and --label override)" : ""));
  }
  if (facts.empty > 0) out.push_back(fmt::format("{} texts are empty", with_commas(facts.empty)));
  out.push_back(facts.validation == 0
                    ? std::string("no validation split") +
                          (facts.prepared ? "" : ": a tenth of train becomes one")
                    : fmt::format("{} texts to validate on", with_commas(facts.validation)));
  return out;
}

}  // namespace lockstep
