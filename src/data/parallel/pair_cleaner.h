// From a raw line pair of a corpus to a usable pair, or the reason why it is none.
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

// The text with every run of white space (as Unicode and Perl's \s have it) as one space and none
// at its ends. REQUIRES valid UTF-8. `out` is overwritten.
void squeeze_spaces(std::string_view text, std::string& out);

struct CleanerOptions {
  CleaningRules rules;
  std::string source_language, target_language;
  bool check_language = true;  // also drops pairs of which both sides are the same 4 words or more
  // As Moses' clean-corpus-n.perl: bars go (they separate its factors).
  bool drop_bars = false;
};

// Counts words as Moses' clean-corpus-n.perl does: after squeezing. Words of more than 1,000
// characters make a pair unusable, as there. One for each thread.
class PairCleaner {
 public:
  explicit PairCleaner(const CleanerOptions& options);

  // The cleaned pair, valid until the next call; nothing when it is dropped, and counts why.
  std::optional<PairView> clean(std::string_view source, std::string_view target,
                                DropCounts& dropped);

 private:
  bool is_usable(PairView pair, DropCounts& dropped) const;

  const CleanerOptions& options_;
  std::optional<LanguageCheck> source_check_, target_check_;
  std::string source_, target_;
};

}  // namespace lockstep
