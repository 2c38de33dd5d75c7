#include "data/tokenize/wordpiece.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <mutex>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::size_t kLongestWord = 100;  // in characters; longer words are [UNK]
constexpr std::size_t kBasicPlane = 0x10000;

// Reads the character at `at` of valid UTF-8 and advances `at`.
char32_t next_character(std::string_view text, std::size_t& at) {
  auto byte = [&] { return static_cast<unsigned char>(text[at++]); };
  char32_t c = byte();
  if (c < 0x80) return c;
  int more = c >= 0xF0 ? 3 : c >= 0xE0 ? 2 : 1;
  c &= 0x3Fu >> more;
  for (; more > 0 && at < text.size(); --more) c = c << 6 | (byte() & 0x3F);
  return c;
}

char* put_utf8(char32_t c, char* to) {
  if (c < 0x80) {
    *to++ = static_cast<char>(c);
    return to;
  }
  int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr unsigned kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  *to++ = static_cast<char>(kFirst[more] | c >> (6 * more));
  while (more-- > 0) *to++ = static_cast<char>(0x80 | (c >> (6 * more) & 0x3F));
  return to;
}

bool is_one_of(std::string_view piece, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return piece.starts_with(start); });
}

}  // namespace

// Collects the normalized characters of a word and looks up the word at its end.
class WordPiece::Encoder {
 public:
  Encoder(const WordPiece& model, std::vector<int32_t>& ids) : model_(model), ids_(ids) {}

  void letter(char32_t c) {
    if (++characters_ <= kLongestWord) end_ = put_utf8(c, end_);
  }
  // Takes the ASCII letters and digits from `at` on and returns the position after them.
  std::size_t ascii_letters(std::string_view text, std::size_t at) {
    while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) {
      char c = model_.ascii_letter_[static_cast<unsigned char>(text[at])];
      if (c == 0) break;
      if (++characters_ <= kLongestWord) *end_++ = c;
      ++at;
    }
    return at;
  }
  void end_word() {
    if (characters_ == 0) return;
    auto size = static_cast<std::size_t>(end_ - word_);
    bool known = false;
    if (characters_ <= kLongestWord) {
      int32_t id = model_.vocabulary_.find_padded(word_, size);
      known = id >= 0;
      if (known) ids_.push_back(id);
      known = known || model_.vocabulary_.split({word_, size}, ids_);
    }
    if (!known) ids_.push_back(model_.unk_);
    end_ = word_;
    characters_ = 0;
  }
  void alone(int32_t id) {
    end_word();
    ids_.push_back(id);
  }
  void character(NormalCharacter c) {
    if (c.kind == CharacterKind::kLetter) return letter(c.code_point);
    if (c.kind == CharacterKind::kRemoved) return;
    end_word();
    if (c.kind == CharacterKind::kSeparator) return;
    letter(c.code_point);
    end_word();
  }

 private:
  const WordPiece& model_;
  std::vector<int32_t>& ids_;
  char word_[4 * kLongestWord + WordPieceVocabulary::kPadding] = {};
  char* end_ = word_;
  std::size_t characters_ = 0;  // of the word, including those beyond kLongestWord
};

std::vector<std::string> WordPiece::read_pieces(const fs::path& path) {
  std::vector<std::string> pieces;
  for_each_line(path, [&](std::string_view line, int64_t number) {
    if (std::optional<std::size_t> at = invalid_utf8_at(line)) {
      throw DataError("{}:{}:{}: byte 0x{:02x} is not valid UTF-8", path.string(), number, *at + 1,
                      static_cast<unsigned char>(line[*at]));
    }
    std::size_t end = line.find_last_not_of(" \t\r");
    pieces.emplace_back(line.substr(0, end == std::string_view::npos ? 0 : end + 1));
  });
  return pieces;
}

WordPiece WordPiece::load(const fs::path& path, const WordPieceConfig& config) {
  return WordPiece(read_pieces(path), config, path.string());
}

WordPiece::WordPiece(const std::vector<std::string>& pieces, const WordPieceConfig& config,
                     const std::string& name)
    : vocabulary_(pieces),
      alphabet_{.lowercase = config.lowercase,
                .strip_accents = config.strip_accents.value_or(config.lowercase),
                .chinese_apart = config.chinese_apart} {
  auto need = [&](const char* piece) {
    if (std::optional<int32_t> id = find(piece)) return *id;
    throw DataError("{}: no piece {}; expected a vocab.txt of BERT", name, piece);
  };
  unk_ = need("[UNK]");
  cls_ = need("[CLS]");
  sep_ = need("[SEP]");
  for (const char* piece : {"[UNK]", "[SEP]", "[CLS]", "[PAD]", "[MASK]"}) {
    if (std::optional<int32_t> id = find(piece)) specials_.push_back(*id);
  }
  plane_ = &plane_of(alphabet_);
  fill_ascii();
}

WordPiece::BasicPlane WordPiece::make_plane(const AlphabetOptions& options) {
  BasicPlane out;
  out.entries.resize(kBasicPlane);
  for (char32_t c = 0; c < kBasicPlane; ++c) {
    std::vector<NormalCharacter> normal = normalize_character(c, options);
    if (normal.empty()) continue;
    BasicPlane::Entry& entry = out.entries[c];
    entry.several = normal.size() > 1 || normal[0].code_point >= kBasicPlane;
    entry.kind = normal[0].kind;
    entry.value = static_cast<char16_t>(entry.several ? out.several.size() : normal[0].code_point);
    if (entry.several) out.several.push_back(std::move(normal));
  }
  return out;
}

const WordPiece::BasicPlane& WordPiece::plane_of(const AlphabetOptions& options) {
  struct Made {
    std::once_flag once;
    BasicPlane plane;
  };
  static std::array<Made, 8> made;
  Made& one = made[(options.lowercase ? 1u : 0u) + (options.strip_accents ? 2u : 0u) +
                   (options.chinese_apart ? 4u : 0u)];
  std::call_once(one.once, [&] { one.plane = make_plane(options); });
  return one.plane;
}

void WordPiece::fill_ascii() {
  for (std::size_t c = 0; c < 128; ++c) {
    const BasicPlane::Entry& entry = plane_->entries[c];
    ascii_letter_[c] = entry.kind == CharacterKind::kLetter ? static_cast<char>(entry.value) : '\0';
    ascii_alone_[c] = -1;
    if (entry.kind != CharacterKind::kAlone) continue;
    ascii_alone_[c] = find(std::string(1, static_cast<char>(c))).value_or(unk_);
  }
}

// Returns the special piece at the start of `text`, which starts with '['.
std::optional<int32_t> WordPiece::special_at(std::string_view text) const {
  for (int32_t id : specials_) {
    if (text.starts_with(piece(id))) return id;
  }
  return std::nullopt;
}

void WordPiece::encode(std::string_view text, std::vector<int32_t>& ids, std::size_t limit) const {
  Encoder encoder(*this, ids);
  for (std::size_t at = 0; at < text.size() && ids.size() < limit;) {
    at = encoder.ascii_letters(text, at);
    if (at == text.size()) break;
    if (text[at] == ' ') {
      encoder.end_word();
      ++at;
      continue;
    }
    std::optional<int32_t> special;
    if (text[at] == '[') special = special_at(text.substr(at));
    if (special) {
      encoder.alone(*special);
      at += piece(*special).size();
      continue;
    }
    char32_t c = next_character(text, at);
    if (c < 0x80 && ascii_alone_[c] >= 0) {
      encoder.alone(ascii_alone_[c]);
    } else if (c >= kBasicPlane) {
      for (NormalCharacter n : normalize_character(c, alphabet_)) encoder.character(n);
    } else if (const BasicPlane::Entry& entry = plane_->entries[c]; entry.several) {
      for (NormalCharacter n : plane_->several[entry.value]) encoder.character(n);
    } else {
      encoder.character({entry.kind, entry.value});
    }
  }
  if (ids.size() < limit) encoder.end_word();
}

KeptIds keep_longest_first(std::size_t first, std::size_t second, std::size_t most) {
  if (first + second <= most) return {first, second};
  const bool first_is_longer = first > second;
  std::size_t shorter = std::min(first, second);
  std::size_t longer = std::max(shorter, most - std::min(most, shorter));
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = most - shorter;
  }
  return first_is_longer ? KeptIds{longer, shorter} : KeptIds{shorter, longer};
}

bool WordPiece::encode_input(std::string_view first, WordPieceInput& out,
                             std::size_t max_length) const {
  out.ids.assign(1, cls_);
  encode(first, out.ids, max_length);  // encodes one more than is kept, to detect a cut
  const bool cut = out.ids.size() > max_length - 1;
  if (cut) out.ids.resize(max_length - 1);
  out.ids.push_back(sep_);
  out.type_ids.assign(out.ids.size(), 0);
  return cut;
}

bool WordPiece::encode_input(std::string_view first, std::string_view second, WordPieceInput& out,
                             std::size_t max_length) const {
  out.ids.assign(1, cls_);
  encode(first, out.ids);
  thread_local std::vector<int32_t> other;  // reuses its memory for each text
  other.clear();
  encode(second, other);
  const std::size_t whole = out.ids.size() - 1;
  const KeptIds kept = keep_longest_first(whole, other.size(), max_length - 3);
  const bool cut = kept.first < whole || kept.second < other.size();
  out.ids.resize(kept.first + 1);
  out.ids.push_back(sep_);
  out.type_ids.assign(out.ids.size(), 0);
  out.ids.insert(out.ids.end(), other.begin(),
                 other.begin() + static_cast<std::ptrdiff_t>(kept.second));
  out.ids.push_back(sep_);
  out.type_ids.resize(out.ids.size(), 1);
  return cut;
}

std::string WordPiece::decode(std::span<const int32_t> ids) const {
  std::string out;
  bool any = false;
  for (int32_t id : ids) {
    if (std::find(specials_.begin(), specials_.end(), id) != specials_.end()) continue;
    std::string_view text = piece(id);
    if (any && text.starts_with("##")) {
      text.remove_prefix(2);
    } else if (any && !is_one_of(text, {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"})) {
      out += ' ';
    }
    out += text;
    any = true;
  }
  return out;
}

}  // namespace lockstep
