#include "data/parallel/language_check.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr int kLanguages = 8;
constexpr std::array<std::string_view, kLanguages> kNames{"en", "de", "fr", "es",
                                                          "it", "nl", "pt", "pl"};

// Words of up to 8 bytes; ASCII letters are in lower case, other letters are never capitals.
constexpr std::array<std::string_view, kLanguages> kWords{
    "the of and to that for it with are this have from not be by which we you they would there "
    "their been has our can should your these what who could when were his her she if its into "
    "than then them out how but my all very about more other some only must also such because "
    "being had did does where while whose between without against during through a i in is was on "
    "as at or an so do no me one two come per he will us am man die war den",
    "der und das den dem des nicht ist ein eine einen einem einer eines mit von zu zum zur auf "
    "für auch sich dass daß wir ich sie wird werden wurde wurden haben hatte kann können aber "
    "oder wenn nach noch nur vor über durch sind bei aus wie sehr mehr unter gegen ihre ihrer "
    "unsere dieser diese dieses einige sowie bereits keine kein muss müssen sollte zwischen weil "
    "in an im am es so was war du er ja man um als bis da je wo per will des en le me",
    "le les des du est et dans une pour qui que pas sur plus par au avec ce cette nous vous ils "
    "elle être sont aux ces mais ou où comme leur leurs été ont fait deux aussi très sans sous "
    "entre même tout tous notre votre je",
    "el los las del y que en una por con para es su al lo como más pero sus este esta ha sobre "
    "también entre cuando muy sin ser hay donde desde todo nos durante todos uno les ni contra "
    "ese eso ante ellos esto antes algunos",
    "il di che è la per un una in del della dei delle degli con non si da sono come anche più ma "
    "nel nella alla al dal dalla questo questa gli ha ed essere ci lo loro sul sulla tra ai "
    "perché quando molto",
    "het een van en de dat niet zijn op te met voor er aan ook door als maar om uit naar bij nog "
    "wordt worden werd deze dit hebben heeft kan kunnen zou moet veel over onze hun geen tot "
    "wij zij ik je",
    "o os as que e do da dos das em um uma para com não por mais como mas foi ao ele ela sua seu "
    "ou ser quando muito há nos já está eu também só pelo pela até isso são num numa",
    "w i na z do nie się jest że o to jak po co za od przez dla są oraz był była było lub być "
    "tylko tym jego już ich ale czy przy który która które"};

constexpr std::size_t kSlots = 4096;  // for about 450 words: collisions are rare
constexpr std::size_t kLongest = 8;

struct Slot {
  uint64_t word = 0;      // the bytes of the word; 0: empty slot
  uint8_t languages = 0;  // bit n: it is a function word of language n
};

uint64_t pack(std::string_view word) {
  uint64_t out = 0;
  for (std::size_t i = 0; i < word.size(); ++i) {
    auto c = static_cast<unsigned char>(word[i]);
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
    out |= uint64_t{c} << (8 * i);
  }
  return out;
}

std::size_t slot_of(const std::vector<Slot>& slots, uint64_t word) {
  std::size_t at = mix64(word) % kSlots;
  while (slots[at].word != 0 && slots[at].word != word) at = (at + 1) % kSlots;
  return at;
}

const std::vector<Slot>& function_words() {
  static const std::vector<Slot> slots = [] {
    std::vector<Slot> out(kSlots);
    for (int language = 0; language < kLanguages; ++language) {
      for (std::string_view word : split_words(kWords[static_cast<std::size_t>(language)])) {
        Slot& slot = out[slot_of(out, pack(word.substr(0, kLongest)))];
        slot.word = pack(word.substr(0, kLongest));
        slot.languages |= static_cast<uint8_t>(1 << language);
      }
    }
    return out;
  }();
  return slots;
}

bool is_basic_letter(unsigned char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
bool in_word(unsigned char c) { return c >= 0x80 || is_basic_letter(c); }

// Counts letters by the leading bytes of UTF-8. Up to U+024F they are Latin. From U+0370 on they
// belong to other scripts, except U+1E00 to U+2BFF (Latin additions, punctuation, symbols) and
// characters beyond the 3-byte forms (mostly pictures).
struct Letters {
  int latin = 0, other = 0;

  void count(unsigned char c, unsigned char next) {
    if (c < 0x80) {
      latin += is_basic_letter(c);
    } else if (c >= 0xC3 && c <= 0xC9) {
      ++latin;
    } else if (c >= 0xCD && c <= 0xDF) {
      ++other;
    } else if (c >= 0xE0 && c <= 0xED) {
      bool latin_or_sign = (c == 0xE1 && next >= 0xB8) || c == 0xE2;
      bool ideographic_sign = c == 0xE3 && next == 0x80;
      other += !latin_or_sign && !ideographic_sign;
    }
  }
};

}  // namespace

std::optional<LanguageCheck> LanguageCheck::of(std::string_view language) {
  auto at = std::find(kNames.begin(), kNames.end(), language);
  if (at == kNames.end()) return std::nullopt;
  return LanguageCheck(static_cast<int>(at - kNames.begin()));
}

bool LanguageCheck::speaks_another(std::string_view sentence) const {
  const std::vector<Slot>& slots = function_words();
  std::array<int, kLanguages> theirs{};  // function words of another language only
  std::array<int, kLanguages> mine{};    // of this language, but not of the other
  Letters letters;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= sentence.size(); ++i) {
    auto c = static_cast<unsigned char>(i < sentence.size() ? sentence[i] : ' ');
    if (in_word(c)) {
      bool last = i + 1 == sentence.size();
      letters.count(c, static_cast<unsigned char>(last ? ' ' : sentence[i + 1]));
      continue;
    }
    if (i > begin && i - begin <= kLongest) {
      int languages = slots[slot_of(slots, pack(sentence.substr(begin, i - begin)))].languages;
      bool is_mine = (languages >> language_ & 1) != 0;
      for (int other = 0; languages != 0 && other < kLanguages; ++other) {
        bool is_theirs = (languages >> other & 1) != 0;
        theirs[static_cast<std::size_t>(other)] += is_theirs && !is_mine;
        mine[static_cast<std::size_t>(other)] += is_mine && !is_theirs;
      }
    }
    begin = i + 1;
  }
  if (letters.other >= 4 && letters.other > letters.latin) return true;
  for (std::size_t i = 0; i < kLanguages; ++i) {
    if (theirs[i] >= 3 && (mine[i] == 0 || theirs[i] >= 5 * mine[i])) return true;
  }
  return false;
}

}  // namespace lockstep
