// Implements `lockstep prepare images`: turns a tree or archives of images into shards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/images/image_source.h"
#include "data/images/images_manifest.h"

namespace lockstep {

struct PrepareImagesOptions {
  fs::path input, out;
  std::vector<ImageInput> inputs;  // files by split, in place of `input`
  std::string input_name;          // for the manifest; empty: the name of `input`
  ImageColumns columns;            // of Parquet and metadata
  fs::path flat_labels;            // for val folders without class folders; empty: none
  bool classes_by_name = false;    // of those: the files' names say their classes
  int64_t resize = 0;              // shorter side to shrink larger images to; 0: keep the files
  int64_t quality = 90;            // of the images that are shrunk
  int64_t shard_bytes = 1 << 30;   // a shard ends before it would exceed this
  bool fail_on_broken = false;     // else such images are left out and listed
  double hold_out = 0;             // share of each class of train that becomes val
  int64_t threads = 0;             // 0: all cores
};

// Decodes every image once to verify that it can be decoded. The manifest is written last. Throws
// DataError for unusable input, ConfigError for wrong options and MachineError when the disk
// refuses.
ImagesManifest prepare_images(const PrepareImagesOptions& options);

// Returns a table for the user.
std::string describe_images(const ImagesManifest& manifest);

}  // namespace lockstep
