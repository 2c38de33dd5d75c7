#include "data/tokenize/bpe_learner.h"

#include <unicode/uscript.h>

#include <algorithm>
#include <optional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/random.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::size_t kLongestPiece = 16;
constexpr char32_t kMark = 0x2581;
constexpr char32_t kProlongedSound = 0x30FC;  // of Katakana; Unicode lists it as common

// Returns the script of a character: a piece must not mix scripts. -1 fits any script.
int script_of(char32_t c) {
  UErrorCode error = U_ZERO_ERROR;
  UScriptCode script = uscript_getScript(static_cast<UChar32>(c), &error);
  if (script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA || c == kProlongedSound) {
    return USCRIPT_HAN;
  }
  if (U_FAILURE(error) || script == USCRIPT_UNKNOWN) return USCRIPT_COMMON;
  return script;
}

bool is_piece(std::u32string_view text) {
  if (text.size() > kLongestPiece) return false;
  int previous = -1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char32_t c = text[i];
    if (c == kOutsideAlphabet || c == 0 || c == '\t' || c == ' ') return false;
    if (c == kMark) {
      if (i > 0) return false;
      continue;
    }
    int script = script_of(c);
    if (script == USCRIPT_INHERITED) script = previous;
    if (script != -1 && previous != -1 && script != previous) return false;
    previous = script;
  }
  return true;
}

// Two neighbouring symbols. Symbols are numbers; `text` is their concatenated text.
struct Pair {
  int32_t left = 0, right = 0;
  int64_t count = 0;
  bool is_piece = false;
  bool done = false;  // merged, or its text is already a piece
  std::u32string text;
  std::vector<int32_t> words;  // words that contain or contained it
};

// A hash table of pair numbers with open addressing, because every neighbour of every merge is
// looked up.
class PairNumbers {
 public:
  PairNumbers() : slots_(1 << 16) {}

  // Returns the number of the pair, which is `next` if the pair is new.
  int32_t find_or_add(int32_t left, int32_t right, int32_t next) {
    uint64_t key = (uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right)) + 1;
    Slot& slot = slots_[slot_of(key)];
    if (slot.key == key) return slot.number;
    slot = {key, next};
    if (2 * ++used_ > slots_.size()) grow();
    return next;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    int32_t number = 0;
  };

  std::size_t slot_of(uint64_t key) const {
    std::size_t mask = slots_.size() - 1;
    std::size_t at = mix64(key) & mask;
    while (slots_[at].key != 0 && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : old) {
      if (slot.key != 0) slots_[slot_of(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

class MergeLearner {
 public:
  explicit MergeLearner(const std::vector<BpeWord>& words) {
    std::unordered_map<char32_t, int32_t> numbers;
    begins_.push_back(0);
    for (const BpeWord& word : words) {
      for (char32_t c : word.text) {
        auto [at, is_new] = numbers.try_emplace(c, static_cast<int32_t>(texts_.size()));
        if (is_new) texts_.emplace_back(1, c);
        symbols_.push_back(at->second);
      }
      begins_.push_back(symbols_.size());
      lengths_.push_back(static_cast<int32_t>(word.text.size()));
      counts_.push_back(word.count);
    }
    for (int32_t word = 0; word < static_cast<int32_t>(counts_.size()); ++word) {
      const int32_t* at = &symbols_[begins_[static_cast<std::size_t>(word)]];
      for (int32_t i = 0; i + 1 < length(word); ++i) add(at[i], at[i + 1], word);
    }
    for (std::size_t i = 0; i < pairs_.size(); ++i) push(static_cast<int32_t>(i));
  }

  std::vector<std::string> run(int64_t merges) {
    std::vector<std::string> out;
    std::unordered_set<std::u32string> seen;
    while (static_cast<int64_t>(out.size()) < merges) {
      std::optional<int32_t> best = take_best();
      if (!best) break;
      Pair& pair = pairs_[static_cast<std::size_t>(*best)];
      pair.done = true;
      if (!seen.insert(pair.text).second) continue;
      out.push_back(to_utf8(pair.text));
      merge(*best);
    }
    return out;
  }

 private:
  struct Entry {
    int64_t count;
    int32_t pair;
  };
  // Returns whether `a` is merged after `b`.
  bool is_later(const Entry& a, const Entry& b) const {
    if (a.count != b.count) return a.count < b.count;
    const std::u32string& x = pairs_[static_cast<std::size_t>(a.pair)].text;
    const std::u32string& y = pairs_[static_cast<std::size_t>(b.pair)].text;
    if (x.size() != y.size()) return x.size() > y.size();
    // Code points have the order of their UTF-8. Of equal texts the pair that was added first comes
    // first.
    int order = x.compare(y);
    return order != 0 ? order > 0 : a.pair > b.pair;
  }

  int32_t& length(int32_t word) { return lengths_[static_cast<std::size_t>(word)]; }

  Pair& pair_of(int32_t left, int32_t right) {
    auto next = static_cast<int32_t>(pairs_.size());
    int32_t number = numbers_.find_or_add(left, right, next);
    if (number == next) {
      Pair pair;
      pair.left = left;
      pair.right = right;
      const std::u32string& a = texts_[static_cast<std::size_t>(left)];
      const std::u32string& b = texts_[static_cast<std::size_t>(right)];
      if (a.size() + b.size() <= kLongestPiece) {
        pair.text = a + b;
        pair.is_piece = lockstep::is_piece(pair.text);
        if (!pair.is_piece) pair.text.clear();
      }
      pairs_.push_back(std::move(pair));
    }
    return pairs_[static_cast<std::size_t>(number)];
  }

  void add(int32_t left, int32_t right, int32_t word) {
    Pair& pair = pair_of(left, right);
    if (!pair.is_piece) return;
    pair.count += counts_[static_cast<std::size_t>(word)];
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(word);
  }
  void take_away(int32_t left, int32_t right, int32_t word) {
    Pair& pair = pair_of(left, right);
    if (pair.is_piece) pair.count -= counts_[static_cast<std::size_t>(word)];
  }

  void push(int32_t number) {
    const Pair& pair = pairs_[static_cast<std::size_t>(number)];
    if (pair.is_piece && !pair.done && pair.count > 0) {
      heap_.push_back({pair.count, number});
      std::push_heap(heap_.begin(), heap_.end(),
                     [this](const Entry& a, const Entry& b) { return is_later(a, b); });
    }
  }

  // Counts only decrease once a pair is in the heap, so a stale entry is put back with its new
  // count.
  std::optional<int32_t> take_best() {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(),
                    [this](const Entry& a, const Entry& b) { return is_later(a, b); });
      Entry entry = heap_.back();
      heap_.pop_back();
      const Pair& pair = pairs_[static_cast<std::size_t>(entry.pair)];
      if (pair.done) continue;
      if (pair.count == entry.count) return entry.pair;
      push(entry.pair);
    }
    return std::nullopt;
  }

  void merge(int32_t number) {
    auto symbol = static_cast<int32_t>(texts_.size());
    Pair& best = pairs_[static_cast<std::size_t>(number)];
    texts_.push_back(best.text);
    std::vector<int32_t> words = std::move(best.words);
    int32_t left = best.left;
    int32_t right = best.right;  // a copy, because adding pairs moves `best`
    std::size_t first_new = pairs_.size();
    for (int32_t word : words) merge_in(word, {left, right}, symbol);
    for (std::size_t i = first_new; i < pairs_.size(); ++i) push(static_cast<int32_t>(i));
  }

  // Joins all occurrences in a word from left to right and updates the counts.
  void merge_in(int32_t word, std::pair<int32_t, int32_t> sides, int32_t symbol) {
    int32_t* at = &symbols_[begins_[static_cast<std::size_t>(word)]];
    int32_t size = length(word);
    int32_t kept = 0;
    for (int32_t i = 0; i < size; ++i) {
      if (at[i] != sides.first || i + 1 == size || at[i + 1] != sides.second) {
        at[kept++] = at[i];
        continue;
      }
      if (kept > 0) {
        take_away(at[kept - 1], sides.first, word);
        add(at[kept - 1], symbol, word);
      }
      if (i + 2 < size) {
        take_away(sides.second, at[i + 2], word);
        add(symbol, at[i + 2], word);
      }
      at[kept++] = symbol;
      ++i;
    }
    length(word) = kept;
  }

  std::vector<std::u32string> texts_;  // of each symbol
  std::vector<int32_t> symbols_;       // of all words, concatenated
  std::vector<std::size_t> begins_;    // of each word
  std::vector<int32_t> lengths_;
  std::vector<int64_t> counts_;
  std::vector<Pair> pairs_;
  PairNumbers numbers_;
  std::vector<Entry> heap_;
};

}  // namespace

std::vector<std::string> learn_merges(const std::vector<BpeWord>& words, int64_t merges) {
  return MergeLearner(words).run(merges);
}

std::vector<std::pair<char32_t, int64_t>> alphabet_of(const std::vector<BpeWord>& words,
                                                      double coverage) {
  std::unordered_map<char32_t, int64_t> counts;
  int64_t all = 0;
  for (const BpeWord& word : words) {
    for (char32_t c : word.text) counts[c] += word.count;
    all += word.count * static_cast<int64_t>(word.text.size());
  }
  std::vector<std::pair<char32_t, int64_t>> sorted(counts.begin(), counts.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<std::pair<char32_t, int64_t>> out;
  int64_t covered = 0;
  for (const auto& [c, count] : sorted) {
    // Single precision, like SentencePiece: in a large text the rarest characters stay out.
    auto share = static_cast<float>(static_cast<double>(covered) / static_cast<double>(all));
    if (share >= static_cast<float>(coverage)) break;
    covered += count;
    if (c != '\t') out.emplace_back(c, count);
  }
  return out;
}

}  // namespace lockstep
