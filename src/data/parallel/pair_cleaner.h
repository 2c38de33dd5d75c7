// Turns a raw pair of lines of a corpus into a usable pair, or says why it is not usable.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "data/manifest/manifest.h"
#include "data/parallel/language_check.h"
#include "data/parallel/sentence_pairs.h"

namespace lockstep {

// Reduces every run of white space (as defined by Unicode and Perl's \s) to one space and removes
// it at the ends. REQUIRES: valid UTF-8. Overwrites `out`.
void squeeze_spaces(std::string_view text, std::string& out);

struct CleanerOptions {
  CleaningRules rules;
  std::string source_language, target_language;
  bool check_language = true;  // also drops pairs with equal sides of 4 or more words
  // Drops bars as in Moses' clean-corpus-n.perl, where they separate factors.
  bool drop_bars = false;
};

// Counts words like Moses' clean-corpus-n.perl, after reducing white space. As there, words of more
// than 1,000 characters make a pair unusable. Each thread needs its own cleaner.
class PairCleaner {
 public:
  explicit PairCleaner(const CleanerOptions& options);

  // Returns the cleaned pair, valid until the next call. Returns nothing and counts the reason if
  // the pair is dropped.
  std::optional<PairView> clean(std::string_view source, std::string_view target,
                                DropCounts& dropped);

 private:
  bool is_usable(PairView pair, DropCounts& dropped) const;

  const CleanerOptions& options_;
  std::optional<LanguageCheck> source_check_, target_check_;
  std::string source_, target_;
};

}  // namespace lockstep
