// The images of one split out of prepared shards, of which some may be missing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/images/image_names.h"
#include "data/images/image_set.h"
#include "data/images/images_manifest.h"
#include "formats/image_index.h"

namespace lockstep {

class ShardImages : public ImageSet {
 public:
  // Throws DataError when the index or a shard is damaged or a class has no images.
  ShardImages(const fs::path& folder, const ImagesManifest& manifest,
              const ImageSplitRecord& split);

  int64_t size() const override { return files_.size(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  int64_t label(int64_t index) const override { return files_.label(index); }
  std::string name(int64_t index) const override;
  // Throws DataError when the shard is missing.
  std::span<const std::byte> bytes(int64_t index, std::vector<std::byte>& space) const override;
  // Does not depend on which shards are there.
  std::string identity() const override { return identity_; }

  std::size_t shards() const { return files_.shards(); }
  bool has_shard(std::size_t shard) const { return files_.has_shard(shard); }
  const std::string& shard_name(std::size_t shard) const { return record_.shards[shard]; }
  int64_t shard_bytes(std::size_t shard) const { return shard_bytes_[shard]; }
  ImagePlace place(int64_t index) const { return files_.place(index); }
  bool is_here(int64_t index) const { return has_shard(place(index).shard); }

  // Whether the folder tells how to check single images; older ones do not.
  bool has_sums() const { return sums_.has_value(); }
  // Whether these are the bytes of the image. REQUIRES has_sums().
  bool matches(int64_t index, std::span<const std::byte> bytes) const {
    return sums_->matches(index, bytes);
  }

 private:
  fs::path folder_;
  ImageSplitRecord record_;
  std::vector<std::string> classes_;
  std::vector<int64_t> shard_bytes_;  // of the whole files
  ImageShards files_;
  std::optional<ImageSums> sums_;
  std::string identity_;
};

// Opens a split of prepared images; shards may be missing. Throws DataError.
std::unique_ptr<ShardImages> open_shard_images(const fs::path& data, const std::string& split);

// Throws DataError, naming those that exist, when there is no such split. `data` is for the
// message.
const ImageSplitRecord& find_images_split(const ImagesManifest& manifest, const fs::path& data,
                                          const std::string& split);

// Throws DataError for a class that has no images. `unread` is the cause, where there are some.
[[noreturn]] void fail_empty_class(const std::string& where, const std::string& name,
                                   const UnreadPictures& unread = {});

}  // namespace lockstep
