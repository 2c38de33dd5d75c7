// The manifest.json of prepared images. It is written last: a folder that has one is complete.
// docs/images.md#data describes the fields.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "data/manifest/manifest.h"

namespace lockstep {

struct ImageSplitRecord {
  std::string name;  // "train", "val"
  int64_t images = 0;
  int64_t bytes = 0;                // of the encoded images
  std::string index;                // file name
  std::string sums;                 // likewise, of the images' hashes; empty in older folders
  std::vector<std::string> shards;  // file names, ordered by shard number
};

// A file that is not an ordinary colour JPEG.
struct OddImage {
  std::string name;  // "train/CLASS/FILE"
  std::string what;  // "greyscale", "CMYK", "16 bits", "PNG named .JPEG", "cannot be decoded: ..."
};

struct ImagesManifest {
  std::string lockstep_version;
  std::string input;                              // the input as named on the command line
  std::map<std::string, std::string> parameters;  // options that determine the output
  std::vector<std::string> classes;               // sorted; the index is the label
  std::vector<ImageSplitRecord> splits;
  std::map<std::string, int64_t> odd_counts;  // kinds of odd images that were kept
  std::vector<OddImage> odd;                  // the first kOddNamed of each kind
  std::vector<OddImage> left_out;             // all images that could not be decoded
  std::vector<FileRecord> files;              // all files of the folder except the manifest

  const ImageSplitRecord* find_split(std::string_view name) const;  // null when absent
  const FileRecord* find_file(std::string_view name) const;         // likewise
};

inline constexpr int64_t kOddNamed = 100;

bool has_manifest(const fs::path& folder);
// Throws DataError when the folder holds no prepared images or the manifest is damaged.
ImagesManifest read_images_manifest(const fs::path& folder);
void write_images_manifest(const fs::path& folder, const ImagesManifest& manifest);

}  // namespace lockstep
