// Turns the messages of user interfaces into running text without accelerators and markup.
#pragma once

#include <optional>
#include <string>

#include "formats/mo_file.h"

namespace lockstep {

struct MessagePair {
  std::string source, target;
};

// Returns whether the catalogue marks keyboard accelerators with '_' (GTK) or '~' (LibreOffice),
// e.g. "_Save". In a translation a mark moves to another word, while an identifier (array_size)
// stays as it is. So the result is true if most words with such a sign differ from those of the
// translation.
bool uses_accelerators(const MoFile& catalogue);

// Returns whether the catalogue marks accelerators with '&' (KDE, Qt, wxWidgets), e.g. "&Save":
// most messages that have one before a letter in both languages have it before different words.
bool uses_ampersands(const MoFile& catalogue);
// Removes the mark on both sides. Returns false where several places could be it.
bool drop_ampersands(MessagePair& pair);

// Returns whether the message is a placeholder that translators replace by their own names.
bool names_translators(const std::string& source);

// Rewrites the pair: removes accelerator marks (if `accelerators`), HTML and help tags and line
// ends, and reduces white space to single spaces. Identifiers, printf conversions (%s, %qE, %<x%>)
// and variables (%PRODUCTNAME, $(ARG1), $name$) stay. Returns the reason if the pair is not a
// translation, else nothing.
std::optional<std::string> clean_messages(MessagePair& pair, bool accelerators);

}  // namespace lockstep
