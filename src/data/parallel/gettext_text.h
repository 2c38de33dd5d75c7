// Makes running text out of the messages of user interfaces: without accelerators and markup.
#pragma once

#include <optional>
#include <string>

#include "formats/mo_file.h"

namespace lockstep {

struct MessagePair {
  std::string source, target;
};

// Whether the catalogue marks keyboard accelerators with '_' (GTK) or '~' (LibreOffice): "_Save".
// A mark moves from word to word in translation, an identifier (array_size) stays as it is: true
// when most words with a '_' differ from those of the translation.
bool uses_accelerators(const MoFile& catalogue);

// Rewrites the pair: accelerator marks (when `accelerators`), HTML and help tags and line ends go,
// white space becomes single spaces. Identifiers, printf conversions (%s, %qE, %<x%>) and variables
// (%PRODUCTNAME, $(ARG1), $name$) stay. Returns why the pair is no translation, or nothing.
std::optional<std::string> clean_messages(MessagePair& pair, bool accelerators);

}  // namespace lockstep
