// Reads images from Parquet files as Hugging Face stores data sets: one column with encoded files
// (an Image feature, or bytes) and one with labels.
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "data/images/image_source.h"

namespace lockstep {

// Images are named after the file and their row. Classes are named by the file's metadata, else by
// the label (numbers get four digits, so that they sort). Throws DataError for a file without such
// columns (with those that it has), and when the program was built without Arrow.
std::unique_ptr<ImageSource> open_parquet_images(const fs::path& path, const std::string& split,
                                                 const ImageColumns& columns = {});

}  // namespace lockstep
