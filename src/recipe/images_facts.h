// Determines the figures of a tree, archives or shards of images.
#pragma once

#include "base/file.h"
#include "recipe/facts.h"

namespace lockstep {

struct ImagesInput {
  fs::path input;                // the input of `lockstep prepare images`, or its output folder
  fs::path flat_labels;          // the option --labels; empty: none
  std::string label;             // the column of its classes; empty: found by its name
  bool classes_by_name = false;  // the option --classes-by-name
};

// Lists all images and decodes a sample of some hundred. Archives are read to their end. Throws
// DataError when there are no images, all are of one class, train and val differ in their classes,
// a class has a single image and there is no val, or no image of the sample can be decoded.
ImagesFacts read_images_facts(const ImagesInput& input);

std::vector<std::string> describe_image_facts(const ImagesFacts& facts);

}  // namespace lockstep
