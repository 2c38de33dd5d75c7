#include "recipe/translation_facts.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "data/lines/progress.h"
#include "data/parallel/sentence_pairs.h"

namespace lockstep {

namespace {

constexpr int64_t kMostWords = 1000;  // per line; longer lines count as this long

// The counts of one side.
struct SideCount {
  int64_t words = 0, characters = 0;
};

class PairCounter {
 public:
  void add(PairView pair) {
    const int64_t longer = std::max(count(pair.source, source_), count(pair.target, target_));
    ++lengths_[static_cast<std::size_t>(std::min(longer, kMostWords))];
    ++pairs_;
  }

  // Returns the facts except the languages and the other splits.
  TranslationFacts facts() const {
    TranslationFacts out;
    out.pairs = pairs_;
    const auto mean = [&](int64_t sum) {
      return static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(1, pairs_));
    };
    out.source_words = mean(source_.words);
    out.target_words = mean(target_.words);
    out.source_characters = mean(source_.characters);
    out.target_characters = mean(target_.characters);
    out.distinct_words = static_cast<int64_t>(words_.size());
    out.alphabet = static_cast<int64_t>(characters_.size());
    int64_t so_far = lengths_[0];
    while (so_far < (pairs_ * 99 + 99) / 100) {
      so_far += lengths_[static_cast<std::size_t>(++out.long_words)];
    }
    return out;
  }

 private:
  int64_t count(std::string_view text, SideCount& side) {
    const std::vector<std::string_view> words = split_words(text);
    side.words += std::ssize(words);
    for (std::string_view word : words) {
      if (std::ssize(words_) < kMostDistinct) words_.emplace(word);
    }
    for (char32_t c : to_code_points(text)) {
      if (std::ssize(characters_) < kMostDistinct) characters_.insert(c);
      ++side.characters;
    }
    return std::ssize(words);
  }

  int64_t pairs_ = 0;
  SideCount source_, target_;
  std::vector<int64_t> lengths_ = std::vector<int64_t>(kMostWords + 1);
  std::unordered_set<std::string> words_;
  std::unordered_set<char32_t> characters_;
};

}  // namespace

namespace {

// Returns the number of pairs of a given split. Throws DataError if there are none.
int64_t held_out_pairs(const ParallelFiles& files) {
  const int64_t pairs = read_held_out_text(files).pairs.size();
  if (pairs > 0) return pairs;
  throw DataError("{} and {}: no pair of lines with text in both", files.source.string(),
                  files.target.string());
}

}  // namespace

TranslationFacts read_translation_facts(const TranslationFiles& files) {
  const ParallelText train = read_held_out_text(files.train);  // this drops only empty lines
  if (train.pairs.size() == 0) {
    throw DataError("{} and {}: no pair of lines with text in both", files.train.source.string(),
                    files.train.target.string());
  }
  PairCounter counter;
  for (int64_t i = 0; i < train.pairs.size(); ++i) counter.add(train.pairs[i]);
  TranslationFacts out = counter.facts();
  out.source_language = files.source_language;
  out.target_language = files.target_language;
  if (files.dev) out.dev_pairs = held_out_pairs(*files.dev);
  if (files.test) out.test_pairs = held_out_pairs(*files.test);
  return out;
}

TranslationFacts translation_facts(const Manifest& manifest) {
  const SplitRecord* train = manifest.find_split("train");
  if (train == nullptr || train->pairs == 0) throw DataError("the corpus has no pairs in train");
  TranslationFacts out;
  out.source_language = manifest.source_language;
  out.target_language = manifest.target_language;
  out.pairs = train->pairs;
  const auto mean = [&](int64_t sum) {
    return static_cast<double>(sum) / static_cast<double>(train->pairs);
  };
  out.source_words = mean(train->source_words);
  out.target_words = mean(train->target_words);
  out.vocabulary = manifest.vocab_size;
  out.target_pieces = train->target_tokens + train->pairs;  // adds one </s> per pair
  const auto pairs_of = [&](const char* name) {
    const SplitRecord* split = manifest.find_split(name);
    return split == nullptr ? 0 : split->pairs;
  };
  out.dev_pairs = pairs_of("dev");
  out.test_pairs = pairs_of("test");
  return out;
}

std::vector<std::string> describe_translation(const TranslationFacts& facts) {
  std::vector<std::string> out{fmt::format(
      "{} pairs, {} to {}, of {:.1f} and {:.1f} words", with_commas(facts.pairs),
      facts.source_language, facts.target_language, facts.source_words, facts.target_words)};
  if (facts.vocabulary > 0) {
    out.push_back(fmt::format("prepared: a vocabulary of {}, {} target pieces in train",
                              with_commas(facts.vocabulary), with_commas(facts.target_pieces)));
  } else {
    out.push_back(fmt::format("99 of 100 pairs have at most {} words; {}{} distinct words",
                              facts.long_words,
                              facts.distinct_words >= kMostDistinct ? "more than " : "",
                              with_commas(facts.distinct_words)));
  }
  const auto held_out = [](int64_t pairs) {
    return pairs == 0 ? "none" : with_commas(pairs) + " pairs";
  };
  out.push_back(
      fmt::format("dev {}, test {}", held_out(facts.dev_pairs), held_out(facts.test_pairs)));
  return out;
}

}  // namespace lockstep
