// Recognizes the names of languages, in the endings of files and in the columns of tables.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace lockstep {

// Returns whether a word looks like the code of a language ("en", "deu", "pt-BR", "zh-Hans") or is
// "source", "target", "src" or "tgt". Usual endings of files ("txt", "csv") are none.
bool is_language_name(std::string_view word);

// Returns "en" for "train.en.gz", and nothing if the ending is not the name of a language.
std::optional<std::string> language_of(const fs::path& file);

// Returns "en" for the columns "en" and "translation.en".
std::string language_of_column(const std::string& column);

}  // namespace lockstep
