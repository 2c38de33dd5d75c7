// The figures of a tree, archives or shards of images.
#pragma once

#include "base/file.h"
#include "recipe/facts.h"

namespace lockstep {

struct ImagesInput {
  fs::path input;        // what `lockstep prepare images` reads, or a folder that it made
  fs::path flat_labels;  // its --val-labels; empty: none
};

// Lists all images and decodes a sample of some hundred. Archives are read to their end. Throws
// DataError when there are none, all are of one class, train and val have other classes, a class
// has a single image and there is no val, or none of the sample can be decoded.
ImagesFacts read_images_facts(const ImagesInput& input);

std::vector<std::string> describe_image_facts(const ImagesFacts& facts);

}  // namespace lockstep
