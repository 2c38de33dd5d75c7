// Reads compiled message catalogues of GNU gettext (.mo) as "The Format of GNU MO Files" in the
// gettext manual defines them. Both byte orders are supported; the text must be UTF-8.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// One message with its translations.
struct MoEntry {
  std::string context;    // msgctxt: where the message is used; empty if absent
  std::string id;         // the untranslated text (the singular if there is a plural)
  std::string id_plural;  // empty for messages without a plural
  std::vector<std::string> translations;  // one, or one for each plural form of the language
};

struct MoFile {
  std::string header;            // the translation of the empty message: "Name: value" lines
  std::vector<MoEntry> entries;  // in the order of the file, without the header
};

// Throws DataError with file and offset for a file that is damaged, not a catalogue or not UTF-8.
MoFile read_mo_file(const fs::path& path);
// Does the same for a catalogue in memory; `name` is for messages.
MoFile parse_mo_file(std::span<const std::byte> bytes, const std::string& name);

}  // namespace lockstep
