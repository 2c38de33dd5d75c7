// Is a sentence in the language it should be in? Conservative: it says no only when the sentence
// speaks clearly for another one, so that names, numbers and fragments pass.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// What speaks: function words (articles, pronouns, prepositions, forms of "to be") of eight
// languages in Latin letters, and the script of the letters. Two languages are compared by the
// words that they do not share.
class LanguageCheck {
 public:
  // Nothing for a language that is not known: every sentence would pass ("en" and "de" are known,
  // and "fr", "es", "it", "nl", "pt", "pl").
  static std::optional<LanguageCheck> of(std::string_view language);

  // True when the words of another language are at least 3 and there is none of this one, or 5
  // times as many; or when more than half of 4 or more letters are of another script.
  bool speaks_another(std::string_view sentence) const;

 private:
  explicit LanguageCheck(int language) : language_(language) {}
  int language_;
};

}  // namespace lockstep
