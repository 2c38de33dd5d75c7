// Labelled texts as JSON: an object a line, or a list of objects.
#pragma once

#include <memory>

#include "base/file.h"
#include "data/labelled/text_source.h"

namespace lockstep {

// .jsonl, .json, plain or .gz. Columns are the keys of the first object; every object needs those
// that are used. Throws DataError with file and line.
std::unique_ptr<TextSource> open_json_text(const fs::path& path, const TextSourceOptions& options);

}  // namespace lockstep
