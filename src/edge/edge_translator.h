// Translates lines with an opened edge folder: what lockstep-translate and the interface in C
// (edge/translate.h) call.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/tokenize/translation_tokenizer.h"
#include "decode/threads.h"
#include "edge/edge_file.h"

namespace lockstep {

// Immutable, hence thread-safe.
class EdgeTranslator {
 public:
  struct Options {
    int64_t threads = 0;  // 0: as many as this process may use
    int64_t n_best = 1;
    std::vector<std::string> settings;  // "beam_size=5", with or without "decoding." before it
  };
  // Throws DataError for a folder that is none or damaged, ConfigError for options.
  EdgeTranslator(const fs::path& folder, const Options& options);

  struct Translation {
    std::string text;
    double score = 0;
    int64_t pieces = 0;
  };
  // Returns the n_best best translations of every line, best first. Throws DataError for a line
  // that is not UTF-8 (`first_line` is the number of the first, for that message).
  std::vector<std::vector<Translation>> translate(const std::vector<std::string>& lines,
                                                  int64_t first_line = 1) const;

  const EdgeFolder& folder() const { return folder_; }

 private:
  EdgeFolder folder_;
  BeamOptions decoding_;
  int64_t n_best_;
  TranslationTokenizer tokenizer_;
  std::unique_ptr<Threads> threads_;
  DecodingModel model_;
};

}  // namespace lockstep
