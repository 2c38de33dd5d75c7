// The images of Parquet files, as Hugging Face keeps data sets: a column with the encoded files
// (its Image, or bytes) and one with their labels.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "data/images/image_source.h"

namespace lockstep {

// Images are named after the file and their row, classes as the file's metadata tells, else by the
// label (numbers with four digits, so that they sort). Throws DataError for a file without such
// columns, and where the program was built without Arrow.
std::unique_ptr<ImageSource> open_parquet_images(const fs::path& path, const std::string& split);

}  // namespace lockstep
