// Reads labelled texts from Parquet files as Hugging Face stores data sets.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/labelled/text_source.h"
#include "formats/parquet_file.h"

namespace lockstep {

// Throws DataError with the row. When the program was built without Arrow, the error says how to
// get it.
std::unique_ptr<TextSource> open_parquet_text(const fs::path& path,
                                              const TextSourceOptions& options);

// Returns the class names of a column if the file's metadata by `datasets` contain them
// (ClassLabel), else none.
std::vector<std::string> parquet_class_names(const ParquetFile& file, const std::string& column);

}  // namespace lockstep
