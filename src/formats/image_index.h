// Reads and writes the index of the images of one split, the shards that hold their bytes, and the
// hashes of the images (docs/formats.md#image-shards). The index is sorted; the shards keep the
// images in the order of arrival. A machine may have some of the shards only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/file.h"
#include "base/output_file.h"

namespace lockstep {

using ImageSum = std::array<unsigned char, 32>;  // SHA-256 of the file of an image

struct ImageRecord {
  std::string name;  // "CLASS/FILE"
  uint32_t shard = 0;
  uint32_t label = 0;
  uint64_t offset = 0;  // within the shard
  uint32_t bytes = 0;
  ImageSum sum = {};
};

// Writes the index with the records in the given order. Throws MachineError.
void write_image_index(const fs::path& path, std::span<const ImageRecord> records);
ImageSum sum_of_image(std::span<const std::byte> file);
// Writes the hashes of the images in the order of the index. Throws MachineError.
void write_image_sums(const fs::path& path, std::span<const ImageRecord> records);

// Writes a new shard. The file appears under its name when finish() returns.
class ImageShardWriter {
 public:
  explicit ImageShardWriter(const fs::path& path);
  uint64_t add(std::span<const std::byte> file);  // returns the offset in the shard
  uint64_t bytes() const { return bytes_; }
  std::string finish();  // returns the SHA-256 of the file

 private:
  void write(const void* data, std::size_t size);

  OutputFile file_;
  Digest hash_ = Digest::sha256();
  uint64_t bytes_ = 0;
};

// The memory-mapped hashes of the images of a split. Several threads may read them.
class ImageSums {
 public:
  // Throws DataError unless the file holds the hashes of so many images.
  ImageSums(const fs::path& path, int64_t images);
  bool matches(int64_t i, std::span<const std::byte> bytes) const;

 private:
  MappedFile file_;
};

// Where the bytes of an image are.
struct ImagePlace {
  uint32_t shard = 0;
  uint64_t offset = 0;
  uint32_t bytes = 0;
};

// A memory-mapped index and those of its shards that are there. Several threads may read it.
class ImageShards {
 public:
  struct Shard {
    fs::path path;      // may not exist
    int64_t bytes = 0;  // of the whole file
  };
  // Checks headers, sizes and every record. Labels must be below `classes`. Throws DataError.
  ImageShards(const fs::path& index, const std::vector<Shard>& shards, int64_t classes);

  int64_t size() const { return records_; }
  int64_t label(int64_t i) const { return entry(i).label; }
  std::string_view name(int64_t i) const;  // "CLASS/FILE"
  ImagePlace place(int64_t i) const;
  std::size_t shards() const { return shards_.size(); }
  bool has_shard(std::size_t shard) const { return !shards_[shard].bytes().empty(); }
  // REQUIRES that the shard of the image is there.
  std::span<const std::byte> bytes(int64_t i) const;

 private:
  struct Entry {
    uint64_t offset;
    uint32_t bytes, shard, label, name_begin;
  };
  Entry entry(int64_t i) const;
  void check(const std::vector<Shard>& shards, int64_t classes) const;

  fs::path path_;
  MappedFile index_;
  std::vector<MappedFile> shards_;  // empty: not there
  int64_t records_ = 0;
  uint64_t name_bytes_ = 0;

  friend void write_image_index(const fs::path& path, std::span<const ImageRecord> records);
};

}  // namespace lockstep
