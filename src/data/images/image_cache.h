// Images that were fetched from other machines, on disk: sparse copies of their shards and a bit
// for each image that is there. Later runs find them again.
//
//   FOLDER/lock                held while a process uses the folder
//   FOLDER/SPLIT.of            identity of the images; others are removed
//   FOLDER/SPLIT.have          a bit for each image
//   FOLDER/SPLIT-00000.shard   with holes where images are not there
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "data/images/shard_images.h"

namespace lockstep {

// Thread-safe, but for calls for one image.
class ImageCache {
 public:
  // Uses `folder`, or the first of FOLDER.1, FOLDER.2, ... that no other process uses. `set` must
  // outlive it. Throws MachineError when the folder cannot be written.
  ImageCache(const fs::path& folder, const std::string& split, const ShardImages& set);

  const fs::path& folder() const { return folder_; }
  // Returns the images that an earlier process put there, ascending; their bytes are not checked.
  std::vector<int64_t> found() const;
  // REQUIRES that put() wrote it, or that it was found.
  void read(int64_t image, std::vector<std::byte>& out) const;
  void put(int64_t image, std::span<const std::byte> bytes);  // MachineError, as of a full disk
  void drop(int64_t image);                                   // gives its space back to the disk

  // Bytes that an image takes at most, in blocks of the disk.
  static uint32_t cost(const ImagePlace& place);
  // Bytes that the folder's disk has left for this user.
  int64_t free_bytes() const;

 private:
  struct ShardFile {
    Descriptor file;
    std::map<uint64_t, uint32_t> pieces;  // that are or come there: begin and bytes
  };
  void claim(const fs::path& folder);
  void begin_anew(const std::string& identity);
  int open_file(const std::string& name) const;
  void mark(int64_t image, bool here);

  const ShardImages& set_;
  std::string split_;
  fs::path folder_;
  Descriptor lock_, have_;
  std::vector<unsigned char> bits_;
  mutable std::mutex mutex_;       // guards bits_ and pieces
  std::vector<ShardFile> shards_;  // files of shards that are missing only
};

}  // namespace lockstep
