#include "data/word_encoder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/usable_cores.h"
#include "data/model_proto.h"
#include "data/ordered_parallel.h"

namespace lockstep {

namespace {

constexpr int64_t kWordsInBlock = 4096;                  // words that a thread encodes at a time
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, a space inside a piece

// The rules of a normaliser: a double-array trie as darts-clone stores it (32 bits a unit), with
// equal subtrees shared.
class RuleTrie {
 public:
  explicit RuleTrie(std::string_view units) : units_(units.size() / 4), seen_(units_.size()) {
    std::memcpy(units_.data(), units.data(), units_.size() * 4);
  }

  // Whether some rule other than that of the space alone has a space in what it replaces.
  bool spans_space() { return !units_.empty() && spans_below(0); }

 private:
  static constexpr uint32_t kSpace = 0x20;

  std::optional<uint32_t> child(uint32_t node, uint32_t label) const {
    uint32_t unit = units_[node];
    uint32_t at = node ^ ((unit >> 10) << ((unit & (1u << 9)) >> 6)) ^ label;
    if (at >= units_.size() || (units_[at] & 0x800000FFu) != label) return std::nullopt;
    return at;
  }
  bool has_children(uint32_t node) const {
    for (uint32_t label = 1; label < 256; ++label) {
      if (child(node, label)) return true;
    }
    return false;
  }
  bool spans_below(uint32_t node) {
    if (seen_[node]) return false;
    seen_[node] = true;
    for (uint32_t label = 1; label < 256; ++label) {
      std::optional<uint32_t> next = child(node, label);
      if (!next) continue;
      if (label == kSpace && (node != 0 || has_children(*next))) return true;
      if (spans_below(*next)) return true;
    }
    return false;
  }

  std::vector<uint32_t> units_;
  std::vector<bool> seen_;
};

bool normalizes_word_by_word(std::string_view spec) {
  bool fits = true;
  std::string_view rules;
  bool whole = for_each_field(spec, [&](const ProtoField& field) {
    if (field.number == 2) rules = field.bytes;
    // add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces; all true by default
    if (field.number >= 3 && field.number <= 5) fits = fits && field.value != 0;
  });
  if (!whole || !fits) return false;
  if (rules.empty()) return true;
  uint32_t bytes = 0;
  if (rules.size() < sizeof bytes) return false;
  std::memcpy(&bytes, rules.data(), sizeof bytes);
  if (bytes > rules.size() - sizeof bytes) return false;
  return !RuleTrie(rules.substr(sizeof bytes, bytes)).spans_space();
}

bool splits_by_space(std::string_view trainer_spec) {
  uint64_t type = 1;  // unigram
  bool suffix = false;
  bool whole = for_each_field(trainer_spec, [&](const ProtoField& field) {
    if (field.number == 3) type = field.value;
    if (field.number == 24) suffix = field.value != 0;
  });
  constexpr uint64_t kBpe = 2;
  return whole && type == kBpe && !suffix;
}

struct Piece {
  std::string_view text;
  uint64_t type = 1;
};

Piece read_piece(std::string_view message) {
  Piece out;
  for_each_field(message, [&](const ProtoField& field) {
    if (field.number == 1) out.text = field.bytes;
    if (field.number == 3) out.type = field.value;
  });
  return out;
}

}  // namespace

bool encodes_word_by_word(std::string_view model) {
  constexpr uint64_t kNormal = 1;
  constexpr uint64_t kUserDefined = 4;
  bool splits = false;
  bool normalizes = true;  // the defaults do
  bool pieces_fit = true;
  bool has_space = false;  // else unknown characters would be joined over a space
  bool whole = for_each_field(model, [&](const ProtoField& field) {
    if (field.number == 2) splits = splits_by_space(field.bytes);
    if (field.number == 3) normalizes = normalizes_word_by_word(field.bytes);
    if (field.number != 1) return;
    Piece piece = read_piece(field.bytes);
    if (piece.type == kUserDefined) pieces_fit = false;
    if (piece.type == kNormal && piece.text == kSpaceMark) has_space = true;
    if (piece.text.find(kSpaceMark, 1) != std::string_view::npos) pieces_fit = false;
  });
  return whole && splits && normalizes && pieces_fit && has_space;
}

WordEncoder::WordEncoder(const Subword& subword, const WordCounts& counts, int64_t most_words)
    : subword_(subword), by_word_(encodes_word_by_word(subword.serialized())), begins_{0} {
  if (!by_word_) return;
  std::vector<CountedWord> words = counts.sorted();
  int64_t used = std::min(most_words, counts.size());
  struct Encoded {
    int64_t begin, end;  // words
    std::vector<int32_t> ids;
    std::vector<std::size_t> sizes;
  };
  ordered_parallel(
      (used + kWordsInBlock - 1) / kWordsInBlock, usable_threads(),
      [&](int64_t block) {
        Encoded out{block * kWordsInBlock, std::min(used, (block + 1) * kWordsInBlock), {}, {}};
        for (int64_t i = out.begin; i < out.end; ++i) {
          std::vector<int32_t> ids = subword_.encode(words[static_cast<std::size_t>(i)].word);
          out.sizes.push_back(ids.size());
          out.ids.insert(out.ids.end(), ids.begin(), ids.end());
        }
        return out;
      },
      [&](const Encoded& block) {
        for (int64_t i = block.begin; i < block.end; ++i) {
          words_.add(words[static_cast<std::size_t>(i)].word);
        }
        for (std::size_t size : block.sizes) begins_.push_back(begins_.back() + size);
        ids_.insert(ids_.end(), block.ids.begin(), block.ids.end());
      });
}

void WordEncoder::encode(std::string_view line, std::vector<int32_t>& ids) const {
  auto append = [&](const std::vector<int32_t>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
  };
  if (!by_word_) return append(subword_.encode(line));
  for_each_word(line, [&](std::string_view word) {
    int64_t number = words_.find(word);
    if (number < 0) return append(subword_.encode(word));
    auto at = static_cast<std::size_t>(number);
    ids.insert(ids.end(), ids_.begin() + static_cast<std::ptrdiff_t>(begins_[at]),
               ids_.begin() + static_cast<std::ptrdiff_t>(begins_[at + 1]));
  });
}

}  // namespace lockstep
