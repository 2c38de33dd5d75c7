#include "data/tokenize/subword.h"

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/ordered_parallel.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "data/tokenize/bpe_learner.h"
#include "data/tokenize/model_proto.h"

namespace lockstep {

namespace {

constexpr int64_t kWordsNormalized = 4096;              // words that a thread normalizes at a time
constexpr std::size_t kLongestSentence = 4192;          // bytes; SentencePiece ignores longer ones
constexpr std::string_view kReserved = "\xE2\x96\x85";  // U+2585, reserved by SentencePiece
constexpr std::string_view kWordMark = "\xE2\x96\x81";  // U+2581
constexpr std::array<std::string_view, 4> kSpecial{"<pad>", "</s>", "<s>", "<unk>"};

// Splits normalized text before each U+2581.
void add_normal_words(std::string text, int64_t count, WordCounts& counts) {
  for (std::string_view special : kSpecial) {
    for (std::size_t at; (at = text.find(special)) != std::string::npos;) {
      text.replace(at, special.size(), "\t");
    }
  }
  std::string_view rest = text;
  while (!rest.empty()) {
    std::size_t end = std::min(rest.find(kWordMark, 1), rest.size());
    counts.add(rest.substr(0, end), count);
    rest.remove_prefix(end);
  }
}

// Returns the words that `config` admits.
std::vector<CountedWord> words_to_learn(const SubwordConfig& config, const WordCounts& counts) {
  std::vector<CountedWord> words = counts.sorted();
  auto most = static_cast<std::size_t>(config.most_words);
  if (words.size() <= most) return words;
  std::unordered_set<char32_t> seen;
  auto brings_nothing = [&](const CountedWord& word) {
    bool any = false;
    for (char32_t c : to_code_points(word.word)) any |= seen.insert(c).second;
    return !any;
  };
  for (std::size_t i = 0; i < most; ++i) brings_nothing(words[i]);
  auto rest = words.begin() + static_cast<std::ptrdiff_t>(most);
  words.erase(std::remove_if(rest, words.end(), brings_nothing), words.end());
  return words;
}

[[noreturn]] void fail_for_alphabet(const SubwordConfig& config, int64_t needed) {
  ConfigError error("a vocabulary of {} is smaller than the alphabet of the text",
                    with_commas(config.vocab_size));
  error.set_cause(fmt::format("its characters and the {} special pieces are {}", kSpecial.size(),
                              with_commas(needed)));
  error.set_advice(
      "a larger --vocab, or --character-coverage 0.9995, which leaves rare "
      "characters out");
  throw error;
}

[[noreturn]] void fail_for_little_text(const SubwordConfig& config, int64_t largest) {
  ConfigError error("a vocabulary of {} is larger than the text allows; at most {} here",
                    with_commas(config.vocab_size), with_commas(largest));
  error.set_advice(fmt::format("--vocab {} or less, or more text", largest));
  throw error;
}

// An iterator over a single word, for SentencePiece's trainer.
class OneWord : public sentencepiece::SentenceIterator {
 public:
  bool done() const override { return done_; }
  void Next() override { done_ = true; }
  const std::string& value() const override { return value_; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  std::string value_ = "ab";
  bool done_ = false;
};

// Returns a SentencePiece model with the settings of `config` that knows only one word. The model
// to be learned takes its normalization rules and its description.
std::string make_template(const SubwordConfig& config) {
  const std::unordered_map<std::string, std::string> options{
      {"model_type", "bpe"},
      {"vocab_size", "7"},
      {"hard_vocab_limit", "false"},
      {"character_coverage", fmt::format("{}", config.character_coverage)},
      {"pad_id", "0"},
      {"eos_id", "1"},
      {"bos_id", "2"},
      {"unk_id", "3"},
      {"minloglevel", "3"},  // silent: errors are returned as a status
  };
  OneWord word;
  std::string model;
  sentencepiece::util::Status status =
      sentencepiece::SentencePieceTrainer::Train(options, &word, &model);
  if (!status.ok()) throw ConfigError("SentencePiece does not start: {}", status.ToString());
  return model;
}

// Normalizes words with the template's rules, each with U+2581 before it; one raw word may give
// several. Special pieces in the text become a tab, which no piece contains.
std::vector<BpeWord> normalize_words(const std::vector<CountedWord>& words, const Subword& rules) {
  WordCounts all;
  int64_t size = static_cast<int64_t>(words.size());
  ordered_parallel((size + kWordsNormalized - 1) / kWordsNormalized, usable_threads(),
                   [&](int64_t block) {
                     std::vector<std::pair<std::string, int64_t>> out;
                     for (int64_t i = block * kWordsNormalized;
                          i < std::min(size, (block + 1) * kWordsNormalized); ++i) {
                       const CountedWord& word = words[static_cast<std::size_t>(i)];
                       bool skipped = word.word.size() > kLongestSentence ||
                                      word.word.find(kReserved) != std::string_view::npos;
                       if (!skipped)
                         out.emplace_back(join(rules.encode_to_pieces(word.word), ""), word.count);
                     }
                     return out;
                   },
                   [&](const std::vector<std::pair<std::string, int64_t>>& normal) {
                     for (const auto& [text, count] : normal) add_normal_words(text, count, all);
                   });
  std::vector<BpeWord> out;
  for (const CountedWord& word : all.sorted()) {
    out.push_back({to_code_points(word.word), word.count});
  }
  return out;
}

}  // namespace

std::string learn_subwords(const SubwordConfig& config, const SentenceSource& next) {
  WordCounts counts;
  std::string_view sentence;
  while (next(sentence)) counts.add_line(sentence);
  return learn_subwords(config, counts);
}

std::string learn_subwords(const SubwordConfig& config, const WordCounts& counts) {
  if (counts.size() == 0) throw DataError("there is no sentence to learn subwords from");
  std::vector<CountedWord> words = words_to_learn(config, counts);
  std::string model = make_template(config);
  std::vector<BpeWord> normal = normalize_words(words, Subword::from_bytes(model));
  std::vector<std::pair<char32_t, int64_t>> alphabet =
      alphabet_of(normal, config.character_coverage);
  auto known = static_cast<int64_t>(alphabet.size() + kSpecial.size());
  if (known > config.vocab_size) fail_for_alphabet(config, known);
  std::unordered_set<char32_t> letters;
  for (const auto& [letter, count] : alphabet) letters.insert(letter);
  for (BpeWord& word : normal) {
    for (char32_t& c : word.text) c = letters.contains(c) ? c : kOutsideAlphabet;
  }
  std::vector<std::string> pieces = learn_merges(normal, config.vocab_size - known);
  known += static_cast<int64_t>(pieces.size());
  if (known < config.vocab_size) fail_for_little_text(config, known);
  for (const auto& [letter, count] : alphabet) pieces.push_back(to_utf8({&letter, 1}));
  return with_pieces(model, pieces);
}

std::string Subword::sha256() const {
  return sha256_hex(std::as_bytes(std::span(model_.data(), model_.size())));
}

}  // namespace lockstep
