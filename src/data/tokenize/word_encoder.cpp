#include "data/tokenize/word_encoder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/ordered_parallel.h"
#include "base/usable_cores.h"
#include "formats/protobuf.h"

namespace lockstep {

namespace {

using protozero::pbf_reader;

constexpr int64_t kWordsInBlock = 4096;                  // words that a thread encodes at a time
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, a space inside a piece

// The rules of a normalizer: a double-array trie in the format of darts-clone (32-bit units), where
// equal subtrees may be shared.
class RuleTrie {
 public:
  explicit RuleTrie(std::string_view units) : units_(units.size() / 4), seen_(units_.size()) {
    std::memcpy(units_.data(), units.data(), units_.size() * 4);
  }

  // Returns whether a rule other than that for the space alone replaces text with a space in it.
  // The walk uses an explicit stack, because the file determines the length of rules.
  bool spans_space() {
    std::vector<uint32_t> open;
    if (!units_.empty()) open.push_back(0);
    while (!open.empty()) {
      const uint32_t node = open.back();
      open.pop_back();
      if (seen_[node]) continue;
      seen_[node] = true;
      for (uint32_t label = 1; label < 256; ++label) {
        const std::optional<uint32_t> next = child(node, label);
        if (!next) continue;
        if (label == kSpace && (node != 0 || has_children(*next))) return true;
        open.push_back(*next);
      }
    }
    return false;
  }

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

  std::vector<uint32_t> units_;
  std::vector<bool> seen_;
};

bool normalizes_word_by_word(std::string_view spec) {
  bool fits = true;
  std::string_view rules;
  pbf_reader reader(spec);
  while (reader.next()) {
    switch (reader.tag()) {
      case 2:
        rules = reader.get_view();
        break;
      case 3:  // add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces; true by default
      case 4:
      case 5:
        fits = reader.get_bool() && fits;
        break;
      default:
        reader.skip();
    }
  }
  if (!fits) return false;
  if (rules.empty()) return true;
  uint32_t bytes = 0;
  if (rules.size() < sizeof bytes) return false;
  std::memcpy(&bytes, rules.data(), sizeof bytes);
  if (bytes > rules.size() - sizeof bytes) return false;
  return !RuleTrie(rules.substr(sizeof bytes, bytes)).spans_space();
}

bool splits_by_space(std::string_view trainer_spec) {
  constexpr int32_t kUnigram = 1, kBpe = 2;
  int32_t type = kUnigram;
  bool suffix = false;
  pbf_reader reader(trainer_spec);
  while (reader.next()) {
    switch (reader.tag()) {
      case 3:
        type = reader.get_enum();
        break;
      case 24:
        suffix = reader.get_bool();
        break;
      default:
        reader.skip();
    }
  }
  return type == kBpe && !suffix;
}

struct Piece {
  std::string_view text;
  int32_t type = 1;
};

Piece read_piece(std::string_view message) {
  Piece out;
  pbf_reader reader(message);
  while (reader.next()) {
    switch (reader.tag()) {
      case 1:
        out.text = reader.get_view();
        break;
      case 3:
        out.type = reader.get_enum();
        break;
      default:
        reader.skip();
    }
  }
  return out;
}

}  // namespace

bool encodes_word_by_word(std::string_view model) {
  constexpr int32_t kNormal = 1;
  constexpr int32_t kUserDefined = 4;
  bool splits = false;
  bool normalizes = true;  // the default does
  bool pieces_fit = true;
  bool has_space = false;  // else unknown characters would be joined across a space
  auto look_at = [&](const Piece& piece) {
    if (piece.type == kUserDefined) pieces_fit = false;
    if (piece.type == kNormal && piece.text == kSpaceMark) has_space = true;
    if (piece.text.find(kSpaceMark, 1) != std::string_view::npos) pieces_fit = false;
  };
  try {
    pbf_reader reader(model);
    while (reader.next()) {
      switch (reader.tag()) {
        case 1:
          look_at(read_piece(reader.get_view()));
          break;
        case 2:
          splits = splits_by_space(reader.get_view());
          break;
        case 3:
          normalizes = normalizes_word_by_word(reader.get_view());
          break;
        default:
          reader.skip();
      }
    }
  } catch (const protozero::exception&) {
    return false;  // the model is damaged
  }
  return splits && normalizes && pieces_fit && has_space;
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
