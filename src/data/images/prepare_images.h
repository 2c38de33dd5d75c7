// From a tree or archives of images to shards, start to end: what `lockstep prepare images` does.
#pragma once

#include <cstdint>
#include <string>

#include "base/file.h"
#include "data/images/images_manifest.h"

namespace lockstep {

struct PrepareImagesOptions {
  fs::path input, out;
  fs::path flat_labels;  // of val folders without class folders; empty: none
  int64_t resize = 0;    // shorter side of larger images, encoded anew; 0: bytes as they are
  int64_t quality = 90;  // of what is encoded anew
  int64_t shard_bytes = 1 << 30;  // a shard is ended before it grows beyond
  bool fail_on_broken = false;    // else images that cannot be decoded are left out and listed
  double hold_out = 0;            // share of each class of train that becomes val; 0: none
  int64_t threads = 0;            // 0: all cores
};

// Every image is decoded once, to know that it can be. The manifest is written last. Throws
// DataError for input that cannot be used, ConfigError for options, MachineError when the disk
// refuses.
ImagesManifest prepare_images(const PrepareImagesOptions& options);

// A table for people.
std::string describe_images(const ImagesManifest& manifest);

}  // namespace lockstep
