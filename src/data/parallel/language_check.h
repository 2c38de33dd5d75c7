// Checks whether a sentence is in the expected language. The check is conservative: it rejects a
// sentence only on clear evidence for another language, so that names, numbers and fragments pass.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// The evidence is function words (articles, pronouns, prepositions, forms of "to be") of eight
// languages in Latin script, and the script of the letters. Two languages are compared by the
// function words that they do not share.
class LanguageCheck {
 public:
  // Returns nothing for an unknown language, for which every sentence would pass. Known are "en",
  // "de", "fr", "es", "it", "nl", "pt" and "pl".
  static std::optional<LanguageCheck> of(std::string_view language);

  // Returns true if the sentence has at least 3 function words of another language, and none or at
  // most a fifth as many of its own; or if it has at least 4 letters of another script, and more of
  // them than Latin ones.
  bool speaks_another(std::string_view sentence) const;

 private:
  explicit LanguageCheck(int language) : language_(language) {}
  int language_;
};

}  // namespace lockstep
