// Compiled message catalogues of GNU gettext (.mo), read only: "The Format of GNU MO Files" in the
// gettext manual. Both byte orders; the text must be UTF-8.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// One message with its translations.
struct MoEntry {
  std::string context;    // msgctxt: who uses the message; empty when there is none
  std::string id;         // the untranslated text, its singular where there is a plural
  std::string id_plural;  // empty for messages without plural
  std::vector<std::string> translations;  // one, or one for each plural form of the language
};

struct MoFile {
  std::string header;            // the translation of the empty message: "Name: value" lines
  std::vector<MoEntry> entries;  // in the order of the file, without the header
};

// Throws DataError with file and offset for a file that is damaged, no catalogue, or not UTF-8.
MoFile read_mo_file(const fs::path& path);

}  // namespace lockstep
