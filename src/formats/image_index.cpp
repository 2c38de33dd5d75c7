#include "formats/image_index.h"

#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "formats/token_ids.h"

namespace lockstep {

namespace {

static_assert(std::endian::native == std::endian::little, "image shards are little-endian");

constexpr std::string_view kIndexMagic = "LSIMGIDX", kShardMagic = "LSIMAGES";
constexpr std::string_view kSumsMagic = "LSIMGSUM";
constexpr uint32_t kIndexVersion = 1;

struct IndexHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  uint64_t records;
  uint64_t name_bytes;
};
static_assert(sizeof(IndexHeader) == 32);

struct ShardHeader {  // also of the hashes
  char magic[8];
  uint32_t version;
  uint32_t reserved;
};
static_assert(sizeof(ShardHeader) == 16);

constexpr std::size_t kSumBytes = sizeof(ImageSum);

template <class Header>
Header checked_header(const fs::path& path, std::span<const std::byte> bytes,
                      std::string_view magic) {
  Header header{};
  if (bytes.size() >= sizeof header) std::memcpy(&header, bytes.data(), sizeof header);
  if (std::string_view(header.magic, 8) != magic) {
    throw DataError("{}: it does not start with \"{}\": not made by `lockstep prepare images`",
                    path.string(), magic);
  }
  if (header.version != kIndexVersion) {
    throw DataError("{}: format version {}, this program reads version {}; prepare it again",
                    path.string(), header.version, kIndexVersion);
  }
  return header;
}

}  // namespace

void write_image_index(const fs::path& path, std::span<const ImageRecord> records) {
  static_assert(sizeof(ImageShards::Entry) == 24);
  OutputFile file(path);
  std::string names;
  for (const ImageRecord& record : records) names += record.name;
  if (names.size() > std::numeric_limits<uint32_t>::max()) {
    throw std::invalid_argument("names of images take more than 4 GiB");
  }
  IndexHeader header{
      .version = kIndexVersion, .records = records.size(), .name_bytes = names.size()};
  std::memcpy(header.magic, kIndexMagic.data(), sizeof header.magic);
  file.write(&header, sizeof header);
  uint32_t begin = 0;
  for (const ImageRecord& record : records) {
    ImageShards::Entry entry{record.offset, record.bytes, record.shard, record.label, begin};
    file.write(&entry, sizeof entry);
    begin += static_cast<uint32_t>(record.name.size());
  }
  file.write(names);
  file.finish();
}

ImageSum sum_of_image(std::span<const std::byte> file) {
  ImageSum out;
  sha256_to_bytes(sha256_hex(file), out.data());
  return out;
}

void write_image_sums(const fs::path& path, std::span<const ImageRecord> records) {
  OutputFile file(path);
  ShardHeader header{.version = kIndexVersion};
  std::memcpy(header.magic, kSumsMagic.data(), sizeof header.magic);
  file.write(&header, sizeof header);
  for (const ImageRecord& record : records) file.write(record.sum.data(), kSumBytes);
  file.finish();
}

ImageSums::ImageSums(const fs::path& path, int64_t images) : file_(path) {
  checked_header<ShardHeader>(path, file_.bytes(), kSumsMagic);
  const std::size_t wanted = sizeof(ShardHeader) + static_cast<std::size_t>(images) * kSumBytes;
  if (file_.bytes().size() != wanted) {
    throw DataError("{}: damaged: has {} bytes, the hashes of {} images take {}", path.string(),
                    file_.bytes().size(), images, wanted);
  }
}

bool ImageSums::matches(int64_t i, std::span<const std::byte> bytes) const {
  const ImageSum sum = sum_of_image(bytes);
  const std::size_t at = sizeof(ShardHeader) + static_cast<std::size_t>(i) * kSumBytes;
  return std::memcmp(file_.bytes().data() + at, sum.data(), kSumBytes) == 0;
}

ImageShardWriter::ImageShardWriter(const fs::path& path) : file_(path) {
  ShardHeader header{.version = kIndexVersion};
  std::memcpy(header.magic, kShardMagic.data(), sizeof header.magic);
  write(&header, sizeof header);
}

void ImageShardWriter::write(const void* data, std::size_t size) {
  file_.write(data, size);
  hash_.update(data, size);
  bytes_ += size;
}

uint64_t ImageShardWriter::add(std::span<const std::byte> file) {
  uint64_t offset = bytes_;
  write(file.data(), file.size());
  return offset;
}

std::string ImageShardWriter::finish() {
  file_.finish();
  return hash_.hex();
}

ImageShards::ImageShards(const fs::path& index, const std::vector<Shard>& shards, int64_t classes)
    : path_(index), index_(index) {
  auto header = checked_header<IndexHeader>(index, index_.bytes(), kIndexMagic);
  uint64_t rest = index_.bytes().size() - sizeof header;
  if (header.records > rest / sizeof(Entry) ||
      rest != header.records * sizeof(Entry) + header.name_bytes) {
    throw DataError("{}: damaged: has {} bytes, its header speaks of {} images", path_.string(),
                    index_.bytes().size(), header.records);
  }
  records_ = static_cast<int64_t>(header.records);
  name_bytes_ = header.name_bytes;
  for (const Shard& shard : shards) {
    shards_.emplace_back();
    if (!fs::exists(shard.path)) continue;
    shards_.back() = MappedFile(shard.path);
    const std::span<const std::byte> bytes = shards_.back().bytes();
    checked_header<ShardHeader>(shard.path, bytes, kShardMagic);
    if (std::ssize(bytes) != shard.bytes) {
      throw DataError("{}: damaged: has {} bytes, the manifest says {}", shard.path.string(),
                      bytes.size(), shard.bytes);
    }
  }
  check(shards, classes);
}

ImageShards::Entry ImageShards::entry(int64_t i) const {
  Entry out;
  std::memcpy(&out, index_.bytes().data() + sizeof(IndexHeader) + i * sizeof out, sizeof out);
  return out;
}

void ImageShards::check(const std::vector<Shard>& shards, int64_t classes) const {
  uint64_t name_begin = 0;
  for (int64_t i = 0; i < records_; ++i) {
    Entry e = entry(i);
    const auto size = e.shard < shards.size() ? static_cast<uint64_t>(shards[e.shard].bytes) : 0;
    bool inside = e.offset >= sizeof(ShardHeader) && e.offset <= size && e.bytes <= size - e.offset;
    if (!inside || e.label >= classes || e.name_begin < name_begin || e.name_begin > name_bytes_) {
      throw DataError("{}: damaged: image {} has label {}, bytes {} to {} of shard {}, name at {}",
                      path_.string(), i, e.label, e.offset, e.offset + e.bytes, e.shard,
                      e.name_begin);
    }
    name_begin = e.name_begin;
  }
}

std::string_view ImageShards::name(int64_t i) const {
  const auto* names = reinterpret_cast<const char*>(index_.bytes().data()) + sizeof(IndexHeader) +
                      records_ * sizeof(Entry);
  uint64_t begin = entry(i).name_begin;
  uint64_t end = i + 1 < records_ ? entry(i + 1).name_begin : name_bytes_;
  return {names + begin, end - begin};
}

ImagePlace ImageShards::place(int64_t i) const {
  Entry e = entry(i);
  return {e.shard, e.offset, e.bytes};
}

std::span<const std::byte> ImageShards::bytes(int64_t i) const {
  Entry e = entry(i);
  return shards_[e.shard].bytes().subspan(e.offset, e.bytes);
}

}  // namespace lockstep
