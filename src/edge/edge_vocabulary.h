// The vocabulary of an edge folder. Of our own vocabularies it is source.spm alone; a published one
// has its ids in vocabulary.pieces besides (docs/formats.md, "Edge model").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/tokenize/translation_tokenizer.h"

namespace lockstep {

// `key` begins the lines about it in the header of model.edge. Without contents there is no file.
struct EdgeVocabularyFile {
  std::string_view key;
  const char* name;
  std::string contents;
};

// Returns all files that a folder may have, in the order of the header.
std::vector<EdgeVocabularyFile> vocabulary_files(const TranslationTokenizer& vocabulary);

// Returns the word of the header's line "vocabulary".
std::string_view vocabulary_word(VocabularyKind kind);

// Reads vocabulary.pieces, whose name is `path`. The SentencePiece models are not part of it.
// Throws DataError when it is damaged.
PublishedVocabulary read_edge_pieces(std::string_view text, const std::string& path,
                                     std::string_view kind);

}  // namespace lockstep
