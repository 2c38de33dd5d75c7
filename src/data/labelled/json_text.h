// Reads labelled texts from JSON: one object per line, or a list of objects.
#pragma once

#include <memory>

#include "base/file.h"
#include "data/labelled/text_source.h"

namespace lockstep {

// Reads .jsonl or .json, plain or .gz. The columns are the keys of the first object; every object
// must have those that are used. Throws DataError with file and line.
std::unique_ptr<TextSource> open_json_text(const fs::path& path, const TextSourceOptions& options);

}  // namespace lockstep
