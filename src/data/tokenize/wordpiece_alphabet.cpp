#include "data/tokenize/wordpiece_alphabet.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace lockstep {

namespace {

bool is_between(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

// The library's tables end with Unicode 8, so newer characters have no category there.
bool has_category(char32_t c, uint32_t mask) {
  auto code_point = static_cast<UChar32>(c);
  if ((U_MASK(u_charType(code_point)) & mask) == 0) return false;
  UVersionInfo age{};
  u_charAge(code_point, age);
  return age[0] >= 1 && age[0] <= 8;
}

bool is_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return c == 0 || c == 0xFFFD || has_category(c, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK);
}

// ASCII symbols count as punctuation. Two characters were punctuation in Unicode 8 and are not
// today.
bool is_punctuation(char32_t c) {
  bool ascii = is_between(c, '!', '/') || is_between(c, ':', '@') || is_between(c, '[', '`') ||
               is_between(c, '{', '~');
  return ascii || c == 0x166D || c == 0x111C9 || has_category(c, U_GC_P_MASK);
}

// Returns whether a character is a nonspacing mark. Marks that had another category in Unicode 8
// are not.
bool is_accent(char32_t c) {
  constexpr char32_t kOther[] = {0x1885, 0x1886, 0xA9BD, 0x111C9};
  if (std::find(std::begin(kOther), std::end(kOther), c) != std::end(kOther)) return false;
  return c == 0x1734 || has_category(c, U_GC_MN_MASK);
}

bool is_chinese(char32_t c) {
  return is_between(c, 0x4E00, 0x9FFF) || is_between(c, 0x3400, 0x4DBF) ||
         is_between(c, 0x20000, 0x2A6DF) || is_between(c, 0x2A700, 0x2B81F) ||
         is_between(c, 0x2B920, 0x2CEAF) || is_between(c, 0xF900, 0xFAFF) ||
         is_between(c, 0x2F800, 0x2FA1F);
}

bool is_space(char32_t c) { return u_isUWhiteSpace(static_cast<UChar32>(c)) != 0; }

// Returns the canonical decomposition. The library's tables are those of Unicode 9.
std::u32string decompose(char32_t c) {
  if (c == 0x11938) return {c};
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(status);
  if (U_FAILURE(status)) throw MachineError("ICU: no NFD: {}", u_errorName(status));
  icu::UnicodeString text;
  if (!nfd->getDecomposition(static_cast<UChar32>(c), text)) return {c};
  std::u32string out;
  for (int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    out.push_back(static_cast<char32_t>(text.char32At(i)));
  }
  return out;
}

struct LowerRange {
  char32_t first, last, lower;
};

// Letters of Unicode 16 and 17, which the library knows but ICU 72 does not.
constexpr LowerRange kYoung[] = {{0x1C89, 0x1C89, 0x1C8A},    {0xA7CB, 0xA7CB, 0x264},
                                 {0xA7CC, 0xA7CC, 0xA7CD},    {0xA7CE, 0xA7CE, 0xA7CF},
                                 {0xA7D2, 0xA7D2, 0xA7D3},    {0xA7D4, 0xA7D4, 0xA7D5},
                                 {0xA7DA, 0xA7DA, 0xA7DB},    {0xA7DC, 0xA7DC, 0x19B},
                                 {0x10D50, 0x10D65, 0x10D70}, {0x16EA0, 0x16EB8, 0x16EBB}};

std::u32string lower(char32_t c) {
  if (c == 0x130) return {U'i', char32_t{0x307}};  // the only one with a lower case of two
  for (const LowerRange& range : kYoung) {
    if (is_between(c, range.first, range.last)) return {range.lower + (c - range.first)};
  }
  return {static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)))};
}

}  // namespace

std::vector<NormalCharacter> normalize_character(char32_t c, const AlphabetOptions& options) {
  if (is_control(c)) return {};
  if (is_space(c)) return {{CharacterKind::kSeparator, U' '}};
  std::u32string text{c};
  if (options.strip_accents) {
    text = decompose(c);
    std::erase_if(text, is_accent);
  }
  std::vector<NormalCharacter> out;
  for (char32_t part : text) {
    for (char32_t final_one : options.lowercase ? lower(part) : std::u32string{part}) {
      bool alone = (options.chinese_apart && is_chinese(c)) || is_punctuation(final_one);
      out.push_back({alone ? CharacterKind::kAlone : CharacterKind::kLetter, final_one});
    }
  }
  return out;
}

}  // namespace lockstep
