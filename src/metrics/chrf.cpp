#include "metrics/chrf.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "metrics/line_text.h"
#include "metrics/ngram_counter.h"

namespace lockstep {

namespace {

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

// Splits a line into words and cuts one punctuation mark off the end or else the start of each
// word.
void cut_words(std::string_view line, std::vector<std::string_view>& words) {
  std::vector<std::string_view> split;
  split_unicode_words(line, split);
  words.clear();
  for (std::string_view word : split) {
    bool single = to_code_points(word).size() == 1;
    std::size_t last = word.size() - 1;
    if (!single && is_ascii_punctuation(word[last])) {
      words.insert(words.end(), {word.substr(0, last), word.substr(last)});
    } else if (!single && is_ascii_punctuation(word[0])) {
      words.insert(words.end(), {word.substr(0, 1), word.substr(1)});
    } else {
      words.push_back(word);
    }
  }
}

// Counts the n-grams of the texts of one segment, which are sequences of numbers. As in
// NgramCounter, a number identifies an n-gram. An n-gram of a reference whose first symbols do not
// occur in the hypothesis cannot match and gets no number.
class SequenceCounter {
 public:
  using Sequence = std::vector<uint32_t>;
  static constexpr uint32_t kUnknown = UINT32_MAX;

  std::vector<Sequence> texts;  // the hypothesis, then its references, as symbol numbers

  // Writes (hypothesis, reference, matches) for orders 1 to `orders` to counts[r], starting at
  // `at`, for every reference r.
  void count(int orders, std::size_t at, std::vector<std::vector<int64_t>>& counts) {
    ngrams_ = texts;
    for (int order = 1; order <= orders; ++order, at += 3) {
      next_order(order);
      for (std::size_t r = 0; r + 1 < texts.size(); ++r) {
        auto in_reference = static_cast<int64_t>(ngrams_[r + 1].size());
        auto in_hypothesis = static_cast<int64_t>(ngrams_[0].size());
        counts[r][at] = in_reference > 0 ? in_hypothesis : 0;
        counts[r][at + 1] = in_reference;
        counts[r][at + 2] = matches(ngrams_[r + 1]);
      }
    }
  }

 private:
  // REQUIRES: ngrams_ holds order - 1. Order 1 is numbered too, because symbols are sparse.
  void next_order(int order) {
    pairs_.clear();
    for (std::size_t t = 0; t < texts.size(); ++t) {
      Sequence& ngrams = ngrams_[t];
      if (order > 1 && !ngrams.empty()) ngrams.pop_back();
      for (std::size_t i = 0; i < ngrams.size(); ++i) {
        uint32_t start = order > 1 ? ngrams[i] : 0;
        uint32_t symbol = texts[t][i + static_cast<std::size_t>(order) - 1];
        if (t == 0) {
          ngrams[i] = pairs_.number(start, symbol);
        } else {
          ngrams[i] = start == kUnknown ? kUnknown : pairs_.find(start, symbol, kUnknown);
        }
      }
    }
    left_.assign(pairs_.size(), 0);
    for (uint32_t ngram : ngrams_[0]) ++left_[ngram];
  }

  // Returns how many n-grams of the reference have a match in the hypothesis.
  int64_t matches(const Sequence& reference) {
    taken_.clear();
    for (uint32_t ngram : reference) {
      if (ngram == kUnknown || left_[ngram] == 0) continue;
      --left_[ngram];
      taken_.push_back(ngram);
    }
    for (uint32_t ngram : taken_) ++left_[ngram];  // for the next reference
    return static_cast<int64_t>(taken_.size());
  }

  std::vector<Sequence> ngrams_;
  std::vector<uint32_t> left_, taken_;
  PairNumbering pairs_;
};

// Scratch space that is reused for many segments. Not thread-safe.
class SegmentCounter {
 public:
  explicit SegmentCounter(const ChrfConfig& config) : config_(config) {}

  // Text 0 is the hypothesis. Returns the counts of each reference.
  const std::vector<std::vector<int64_t>>& count(const std::vector<std::string>& texts) {
    int orders = config_.char_order + config_.word_order;
    counts_.assign(texts.size() - 1, std::vector<int64_t>(3 * static_cast<std::size_t>(orders)));
    counter_.texts.resize(texts.size());
    for (std::size_t t = 0; t < texts.size(); ++t) read_characters(texts[t], counter_.texts[t]);
    counter_.count(config_.char_order, 0, counts_);
    if (config_.word_order == 0) return counts_;
    numbers_.clear();
    for (std::size_t t = 0; t < texts.size(); ++t) read_words(texts[t], counter_.texts[t]);
    counter_.count(config_.word_order, 3 * static_cast<std::size_t>(config_.char_order), counts_);
    return counts_;
  }

 private:
  void read_characters(std::string_view line, std::vector<uint32_t>& out) {
    out.clear();
    auto append = [&](std::string_view part) {
      for (char32_t c : to_code_points(part)) out.push_back(c);
    };
    if (config_.whitespace) return append(line);
    split_unicode_words(line, words_);
    for (std::string_view word : words_) append(word);
  }

  void read_words(std::string_view line, std::vector<uint32_t>& out) {
    out.clear();
    cut_words(line, words_);
    for (std::string_view word : words_) {
      auto number = static_cast<uint32_t>(numbers_.size());
      out.push_back(numbers_.try_emplace(word, number).first->second);
    }
  }

  const ChrfConfig& config_;
  SequenceCounter counter_;
  std::vector<std::vector<int64_t>> counts_;
  std::unordered_map<std::string_view, uint32_t> numbers_;  // of the words of this segment
  std::vector<std::string_view> words_;
};

// Computes the F score from (hypothesis, reference, matches) of each order, with sacreBLEU's
// operations in the same order. `single` says whether numpy's result would be a float32, which a
// plain 0 is not.
template <typename Real, typename Count>
MetricValue f_score(const ChrfConfig& config, std::span<const Count> counts) {
  const Real eps = static_cast<Real>(1e-16);
  const auto factor = static_cast<Real>(config.beta * config.beta);
  const bool single = sizeof(Real) == sizeof(float);
  Real smoothed = 0, precisions = 0, recalls = 0;
  int effective = 0;
  for (std::size_t i = 0; i < counts.size(); i += 3) {
    auto hypothesis = static_cast<Real>(counts[i]), reference = static_cast<Real>(counts[i + 1]);
    auto matches = static_cast<Real>(counts[i + 2]);
    Real precision = hypothesis > 0 ? matches / hypothesis : eps;
    Real recall = reference > 0 ? matches / reference : eps;
    Real weighted = factor * precision + recall;
    smoothed += weighted > 0 ? (1 + factor) * precision * recall / weighted : eps;
    if (hypothesis <= 0 || reference <= 0) continue;
    precisions += precision;
    recalls += recall;
    ++effective;
  }
  if (config.eps_smoothing) {
    return {100 * smoothed / static_cast<Real>(config.char_order + config.word_order), single};
  }
  if (effective > 0) {
    precisions /= static_cast<Real>(effective);
    recalls /= static_cast<Real>(effective);
  }
  if (precisions + recalls == 0) return {0, false};
  Real score = (1 + factor) * precisions * recalls;
  score /= factor * precisions + recalls;
  return {100 * score, single};
}

}  // namespace

Chrf::Chrf(const ChrfConfig& config) : config_(config) {
  constexpr int kMost = 100;  // longer n-grams serve no purpose
  if (config.char_order < 1 || config.char_order > kMost) {
    throw ConfigError("chrF: char_order {}: expected 1 to {}", config.char_order, kMost);
  }
  if (config.word_order < 0 || config.word_order > kMost) {
    throw ConfigError("chrF: word_order {}: expected 0 to {}", config.word_order, kMost);
  }
  if (config.beta < 0 || config.beta > kMost) {
    throw ConfigError("chrF: beta {}: expected 0 to {}", config.beta, kMost);
  }
}

std::string Chrf::name() const {
  return fmt::format("chrF{}{}", config_.beta,
                     std::string(static_cast<std::size_t>(config_.word_order), '+'));
}

std::size_t Chrf::value_count() const {
  int orders = config_.char_order + config_.word_order;
  return 3 * static_cast<std::size_t>(orders);
}

std::vector<double> Chrf::statistics(const std::vector<std::string>& hypotheses,
                                     const std::vector<std::vector<std::string>>& references,
                                     std::size_t begin, std::size_t end) const {
  SegmentCounter counter(config_);
  std::vector<std::string> texts(references.size() + 1);
  std::vector<double> out;
  out.reserve((end - begin) * value_count());
  for (std::size_t i = begin; i < end; ++i) {
    for (std::size_t t = 0; t < texts.size(); ++t) {
      const std::string& text = t == 0 ? hypotheses[i] : references[t - 1][i];
      texts[t] = config_.lowercase ? lower_case(text) : text;
    }
    const std::vector<std::vector<int64_t>>& counts = counter.count(texts);
    std::size_t best = 0;
    double best_score = -1;
    for (std::size_t r = 0; r < counts.size(); ++r) {
      double score = f_score<double, int64_t>(config_, counts[r]).score;
      if (score <= best_score) continue;  // on a tie the first one counts
      best_score = score;
      best = r;
    }
    out.insert(out.end(), counts[best].begin(), counts[best].end());
  }
  return out;
}

MetricValue Chrf::value(std::span<const double> sums, Arithmetic arithmetic) const {
  return arithmetic == Arithmetic::kSingle ? f_score<float, double>(config_, sums)
                                           : f_score<double, double>(config_, sums);
}

std::vector<SignaturePart> Chrf::signature_parts() const {
  auto yes = [](bool value) { return value ? "yes" : "no"; };
  return {{"case", "c", config_.lowercase ? "lc" : "mixed"},
          {"eff", "e", yes(!config_.eps_smoothing)},
          {"nc", "nc", std::to_string(config_.char_order)},
          {"nw", "nw", std::to_string(config_.word_order)},
          {"space", "s", yes(config_.whitespace)}};
}

}  // namespace lockstep
