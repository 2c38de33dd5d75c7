// Labelled texts in Parquet files, as Hugging Face keeps data sets.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/labelled/text_source.h"
#include "formats/parquet_file.h"

namespace lockstep {

// Throws DataError with the row; where the program was built without Arrow it says how to get it.
std::unique_ptr<TextSource> open_parquet_text(const fs::path& path,
                                              const TextSourceOptions& options);

// The names of the classes of a column, when the file's metadata by `datasets` tells them
// (ClassLabel); else none.
std::vector<std::string> parquet_class_names(const ParquetFile& file, const std::string& column);

}  // namespace lockstep
