// The figures of labelled texts, and which files and columns they are read from.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/labelled/text_inputs.h"
#include "data/labelled/text_manifest.h"
#include "recipe/facts.h"

namespace lockstep {

struct TextsInput {
  fs::path data;        // a file or folder as `lockstep prepare labelled` reads it
  TextColumns columns;  // that the user names; empty: by name, else guessed
  bool values = false;  // labels are numbers to be predicted
};

// What was found of the files.
struct TextsReading {
  std::vector<TextSplitInput> splits;
  TextColumns columns;       // none for folders of texts
  bool guessed = false;      // the columns were
  std::string classes_file;  // names of the classes beside the data, or empty
};

struct TextsFound {
  TextsFacts facts;
  TextsReading reading;  // nothing in it for prepared ones
};

// Reads all of train and counts the other splits. Tokens are counted with the vocabulary in
// `tokenizer` (a folder or vocab.txt) where that is not empty. Throws DataError for what cannot be
// read, labels that are missing, and texts that are all of one class.
TextsFound read_texts_facts(const TextsInput& input, const fs::path& tokenizer);

// Of `lockstep prepare labelled`'s folder.
TextsFacts texts_facts(const TextManifest& manifest);

std::vector<std::string> describe_texts(const TextsFacts& facts, const TextsReading& reading);

}  // namespace lockstep
