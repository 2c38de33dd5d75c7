// The images of one split as encoded files with labels. They are in a plain folder SPLIT/CLASS/FILE
// or in shards that `lockstep prepare images` made (docs/formats.md#image-shards). Both have the
// same order (classes sorted, then files sorted, by bytes), so an index means the same image in
// both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// All methods are thread-safe.
class ImageSet {
 public:
  virtual ~ImageSet() = default;

  virtual int64_t size() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;  // sorted; index = label
  virtual int64_t label(int64_t index) const = 0;
  virtual std::string name(int64_t index) const = 0;  // "train/CLASS/FILE", for messages
  // Returns the encoded file as a view of memory that the set owns, or of `space`. Throws DataError
  // when the file cannot be read.
  virtual std::span<const std::byte> bytes(int64_t index, std::vector<std::byte>& space) const = 0;
  // Returns a hash that is equal for equal data in any folder: ranks on several hosts compare it.
  virtual std::string identity() const = 0;
};

// Opens a split of `data`, a folder with manifest.json (shards) or with one folder per split.
// Throws DataError when the split is absent, has no classes, has a class without images, or lacks
// a shard.
std::unique_ptr<ImageSet> open_image_set(const fs::path& data, const std::string& split);

// Returns the size of a split without opening its shards. Throws DataError.
int64_t count_images(const fs::path& data, const std::string& split);

// Throws ConfigError for no name and DataError for no folder.
void require_data_folder(const fs::path& data);

// Throws DataError that names the classes when `validation` lacks classes of `train` or has others:
// labels would not match.
void check_same_classes(const ImageSet& train, const ImageSet& validation);

}  // namespace lockstep
