// Reads the vocabularies of published translation models as transformers stores them:
//
//   Marian   source.spm, target.spm, vocab.json (with separate_vocabs also target_vocab.json)
//   M2M100   sentencepiece.bpe.model, vocab.json; languages by their order behind these
//   NLLB     sentencepiece.bpe.model; languages in tokenizer_config.json, added_tokens.json or
//            special_tokens_map.json
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "data/tokenize/translation_tokenizer.h"

namespace lockstep {

// The names of all files that read_published_vocabulary() looks at.
const std::vector<std::string>& published_vocabulary_files();

// Whether the folder has a file that only such vocabularies have.
bool has_published_vocabulary(const fs::path& folder);

// Throws DataError that names a missing or damaged file, and a vocabulary that lockstep lacks.
PublishedVocabulary read_published_vocabulary(const fs::path& folder);

}  // namespace lockstep
