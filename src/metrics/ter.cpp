#include "metrics/ter.h"

#include <unordered_map>

#include "base/text.h"
#include "metrics/line_text.h"
#include "metrics/ter_shifts.h"

namespace lockstep {

namespace {

bool is_between(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

bool is_asian_punctuation(char32_t c) {
  return is_between(c, 0x3001, 0x3002) || is_between(c, 0x3008, 0x3011) ||
         is_between(c, 0x3014, 0x301F) || is_between(c, 0xFF61, 0xFF65) || c == 0x30FB;
}

bool is_full_width_punctuation(char32_t c) {
  return c == 0xFF01 || c == 0xFF02 || c == 0xFF08 || c == 0xFF09 || c == 0xFF0C || c == 0xFF0E ||
         c == 0xFF1A || c == 0xFF1B || c == 0xFF1F;
}

// Returns whether asian_support makes a token of the character. The range from U+3200 ends where
// sacreBLEU ends it. Kana stay together: sacreBLEU's rules for them require a line of nothing but
// kana, and the blanks around every line prevent that.
bool is_asian(char32_t c) {
  return is_between(c, 0x4E00, 0x9FFF) || is_between(c, 0x3400, 0x4DBF) ||
         is_between(c, 0x31C0, 0x31EF) || is_between(c, 0x2E80, 0x2EFF) ||
         is_between(c, 0x3200, 0x3F22) || is_between(c, 0xF900, 0xFAFF) ||
         is_between(c, 0xFE30, 0xFE4F) || is_asian_punctuation(c) || is_full_width_punctuation(c);
}

std::string separate_asian(std::string_view line) {
  std::string out;
  for (char32_t c : to_code_points(line)) {
    bool alone = is_asian(c);
    if (alone) out += ' ';
    append_utf8(c, out);
    if (alone) out += ' ';
  }
  return out;
}

std::string remove_punctuation(std::string_view line, bool asian) {
  std::string out;
  for (char32_t c : to_code_points(line)) {
    bool western = c < 0x80 && std::string_view(".,?:;!\"()").find(static_cast<char>(c)) !=
                                   std::string_view::npos;
    bool eastern = asian && (is_asian_punctuation(c) || is_full_width_punctuation(c));
    if (!western && !eastern) append_utf8(c, out);
  }
  return out;
}

// Tercom's normalization: the general part and the part for Western languages.
std::string normalize(std::string text) {
  replace_all(text, "\n-", "");
  replace_all(text, "\n", " ");
  unescape_entities(text);
  text = separate_symbols(" " + text + " ");
  replace_all(text, "'s ", " 's ");
  return separate_points(text);
}

}  // namespace

std::string Ter::tokenize(std::string_view line) const {
  line = strip_right(line);
  std::string text = config_.case_sensitive ? std::string(line) : lower_case(line);
  if (text.empty()) return text;
  if (config_.normalized) {
    text = normalize(std::move(text));
    if (config_.asian_support) text = separate_asian(text);
  }
  if (config_.no_punctuation) text = remove_punctuation(text, config_.asian_support);
  return text;
}

std::vector<double> Ter::statistics(const std::vector<std::string>& hypotheses,
                                    const std::vector<std::vector<std::string>>& references,
                                    std::size_t begin, std::size_t end) const {
  ShiftSearch search;
  std::vector<std::string> texts(references.size() + 1);
  std::vector<std::vector<uint32_t>> numbers(texts.size());
  std::unordered_map<std::string_view, uint32_t> words;
  std::vector<std::string_view> split;
  std::vector<double> out;
  for (std::size_t i = begin; i < end; ++i) {
    words.clear();
    for (std::size_t t = 0; t < texts.size(); ++t) {
      texts[t] = tokenize(t == 0 ? hypotheses[i] : references[t - 1][i]);
      split_unicode_words(texts[t], split);
      numbers[t].clear();
      for (std::string_view word : split) {
        auto next = static_cast<uint32_t>(words.size());
        numbers[t].push_back(words.try_emplace(word, next).first->second);
      }
    }
    int64_t fewest = INT64_MAX;
    std::size_t length = 0;
    for (std::size_t r = 1; r < texts.size(); ++r) {
      fewest = std::min(fewest, search.edits(numbers[0], numbers[r]));
      length += numbers[r].size();
    }
    out.push_back(static_cast<double>(fewest));
    out.push_back(static_cast<double>(length) / static_cast<double>(references.size()));
  }
  return out;
}

MetricValue Ter::value(std::span<const double> sums, Arithmetic arithmetic) const {
  double edits = sums[0], length = sums[1];
  if (length <= 0) return {edits > 0 ? 100.0 : 0.0, false};
  if (arithmetic == Arithmetic::kSingle) {
    return {100 * (static_cast<float>(edits) / static_cast<float>(length)), true};
  }
  return {100 * (edits / length), false};
}

std::vector<SignaturePart> Ter::signature_parts() const {
  auto yes = [](bool value) { return value ? "yes" : "no"; };
  return {{"case", "c", config_.case_sensitive ? "mixed" : "lc"},
          {"tok", "t", "tercom"},
          {"norm", "nr", yes(config_.normalized)},
          {"punct", "pn", yes(!config_.no_punctuation)},
          {"asian", "as", yes(config_.asian_support)}};
}

}  // namespace lockstep
