// The images of one split as encoded files with labels: a plain folder SPLIT/CLASS/FILE, or shards
// that `lockstep prepare images` made (docs/formats.md#image-shards). Both have the same order
// (classes sorted, then files sorted, by bytes), so an index means the same image in both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// All methods are safe to call from several threads.
class ImageSet {
 public:
  virtual ~ImageSet() = default;

  virtual int64_t size() const = 0;
  virtual const std::vector<std::string>& classes() const = 0;  // sorted; index = label
  virtual int64_t label(int64_t index) const = 0;
  virtual std::string name(int64_t index) const = 0;  // "train/CLASS/FILE", for messages
  // The encoded file: a view of memory that the set owns, or of `space`. Throws DataError when the
  // file cannot be read.
  virtual std::span<const std::byte> bytes(int64_t index, std::vector<std::byte>& space) const = 0;
  // Equal for equal data wherever they lie: ranks on several hosts compare it.
  virtual std::string identity() const = 0;
};

// The split of `data`: a folder with manifest.json (shards) or with a folder per split. Throws
// DataError when it is absent, has no classes, or a class without images.
std::unique_ptr<ImageSet> open_image_set(const fs::path& data, const std::string& split);

// Throws DataError, naming them, when `validation` lacks classes of `train` or has others: a label
// would mean two things.
void check_same_classes(const ImageSet& train, const ImageSet& validation);

}  // namespace lockstep
