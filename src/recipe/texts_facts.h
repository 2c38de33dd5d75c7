// Determines the figures of labelled texts, and which files and columns they are read from.
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
  fs::path data;        // a file or folder that `lockstep prepare labelled` can read
  TextColumns columns;  // named by the user; empty: by known names or guessed
  bool values = false;  // labels are numbers to predict
};

// The files and columns that were found.
struct TextsReading {
  std::vector<TextSplitInput> splits;
  TextColumns columns;       // none for folders of text files
  bool guessed = false;      // whether the columns were guessed
  std::string classes_file;  // the file of class names beside the data, or empty
};

struct TextsFound {
  TextsFacts facts;
  TextsReading reading;  // empty for prepared texts
};

// Reads all of train and counts the texts of validation and test. Tokens are counted with the
// vocabulary in `tokenizer` (a folder or vocab.txt) unless it is empty. Throws DataError for files
// that cannot be read, missing labels, and texts that are all of one class.
TextsFound read_texts_facts(const TextsInput& input, const fs::path& tokenizer);

// Returns the facts of texts that `lockstep prepare labelled` prepared.
TextsFacts texts_facts(const TextManifest& manifest);

std::vector<std::string> describe_texts(const TextsFacts& facts, const TextsReading& reading);

}  // namespace lockstep
