// Reads pictures that are listed one by one, as the hub's data sets of the layout "imagefolder".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/images/image_source.h"

namespace lockstep {

// `files` are pictures and metadata.csv or .jsonl. A picture's class is its label in the metadata
// of a folder above it, else the name of its folder, else what `labels` say, which must outlive the
// source. Throws DataError for metadata without file_name or label.
std::unique_ptr<ImageSource> open_pictures(const std::vector<ImageInput>& files,
                                           const FlatLabels& labels, const ImageColumns& columns);

// Returns the class that a label means: its name by `names`, where it is a number; four digits, so
// that they sort, where there are no names; else itself. Throws DataError, with `place`, for a
// number that has no name.
std::string class_of_label(const std::string& label, const std::vector<std::string>& names,
                           const std::string& place);

// Returns the names of a column's labels; none when it has none.
std::vector<std::string> names_of_labels(const ImageColumns& columns, const std::string& column);

}  // namespace lockstep
