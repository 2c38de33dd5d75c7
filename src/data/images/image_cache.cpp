#include "data/images/image_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr uint64_t kBlock = 4096;
constexpr int kMostFolders = 64;

MachineError cannot_write(const fs::path& path, int reason) {
  MachineError error("{}: cannot be written: {}", path.string(), std::strerror(reason));
  error.set_advice("images.cache=FOLDER names another place for images that other machines send");
  return error;
}

}  // namespace

ImageCache::ImageCache(const fs::path& folder, const std::string& split, const ShardImages& set)
    : set_(set), split_(split) {
  claim(folder);
  const fs::path of = folder_ / (split_ + ".of");
  const std::string before = fs::exists(of) ? read_file(of) : "";
  if (before != set.identity()) begin_anew(set.identity());
  have_ = Descriptor(open_file(split_ + ".have"));
  bits_.resize(static_cast<std::size_t>((set.size() + 7) / 8));
  const ssize_t got = ::pread(have_.get(), bits_.data(), bits_.size(), 0);
  if (got < 0) throw cannot_write(folder_ / (split_ + ".have"), errno);
  shards_.resize(set.shards());
  for (std::size_t s = 0; s < set.shards(); ++s) {
    if (!set.has_shard(s)) shards_[s].file = Descriptor(open_file(set.shard_name(s)));
  }
  for (int64_t image : found()) {
    const ImagePlace place = set.place(image);
    shards_[place.shard].pieces.emplace(place.offset, place.bytes);
  }
}

// Takes the first folder that no other process uses.
void ImageCache::claim(const fs::path& folder) {
  for (int i = 0; i < kMostFolders; ++i) {
    folder_ = folder;
    if (i > 0) folder_ += fmt::format(".{}", i);
    std::error_code failed;
    fs::create_directories(folder_, failed);
    if (failed) throw cannot_write(folder_, failed.value());
    lock_ = Descriptor(open_file(split_ + ".lock"));
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return;
    if (errno != EWOULDBLOCK) throw cannot_write(folder_ / (split_ + ".lock"), errno);
  }
  throw MachineError("{}: in use by {} other runs", folder.string(), kMostFolders);
}

// Removes what is there of the split, which is of other images.
void ImageCache::begin_anew(const std::string& identity) {
  const auto remove = [this](const std::string& name) {
    std::error_code failed;
    fs::remove(folder_ / name, failed);
    if (failed) throw cannot_write(folder_ / name, failed.value());
  };
  remove(split_ + ".of");
  remove(split_ + ".have");
  for (std::size_t s = 0; s < set_.shards(); ++s) remove(set_.shard_name(s));
  write_file(folder_ / (split_ + ".of"), identity);
}

int ImageCache::open_file(const std::string& name) const {
  const int fd = ::open((folder_ / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) throw cannot_write(folder_ / name, errno);
  return fd;
}

std::vector<int64_t> ImageCache::found() const {
  std::lock_guard lock(mutex_);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < set_.size(); ++i) {
    const bool set = (bits_[static_cast<std::size_t>(i / 8)] >> (i % 8) & 1) != 0;
    if (set && !set_.is_here(i)) out.push_back(i);
  }
  return out;
}

void ImageCache::mark(int64_t image, bool here) {
  const auto byte = static_cast<std::size_t>(image / 8);
  const auto bit = static_cast<unsigned char>(1U << (image % 8));
  bits_[byte] = static_cast<unsigned char>(here ? bits_[byte] | bit : bits_[byte] & ~bit);
  if (::pwrite(have_.get(), &bits_[byte], 1, static_cast<off_t>(byte)) != 1) {
    throw cannot_write(folder_ / (split_ + ".have"), errno);
  }
}

void ImageCache::read(int64_t image, std::vector<std::byte>& out) const {
  const ImagePlace place = set_.place(image);
  out.resize(place.bytes);
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t n = ::pread(shards_[place.shard].file.get(), out.data() + done, out.size() - done,
                              static_cast<off_t>(place.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      throw DataError("{}: cannot be read: {}", (folder_ / set_.shard_name(place.shard)).string(),
                      n < 0 ? std::strerror(errno) : "it became shorter");
    }
    done += static_cast<std::size_t>(n);
  }
}

void ImageCache::put(int64_t image, std::span<const std::byte> bytes) {
  const ImagePlace place = set_.place(image);
  ShardFile& shard = shards_[place.shard];
  {
    std::lock_guard lock(mutex_);  // before the first byte: the hole of a neighbour ends here
    shard.pieces.emplace(place.offset, place.bytes);
  }
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = ::pwrite(shard.file.get(), bytes.data() + done, bytes.size() - done,
                               static_cast<off_t>(place.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw cannot_write(folder_ / set_.shard_name(place.shard), n < 0 ? errno : ENOSPC);
    done += static_cast<std::size_t>(n);
  }
  std::lock_guard lock(mutex_);
  mark(image, true);
}

// Punches a hole from the end of the image before it to the begin of the one after it that are
// there, so that blocks which several images share go with the last of them.
void ImageCache::drop(int64_t image) {
  const ImagePlace place = set_.place(image);
  ShardFile& shard = shards_[place.shard];
  std::lock_guard lock(mutex_);
  mark(image, false);
  const auto piece = shard.pieces.find(place.offset);
  if (piece == shard.pieces.end()) return;
  uint64_t begin = 0, end = static_cast<uint64_t>(set_.shard_bytes(place.shard)) + kBlock;
  if (piece != shard.pieces.begin()) {
    const auto before = std::prev(piece);
    begin = before->first + before->second;
  }
  if (const auto after = std::next(piece); after != shard.pieces.end()) end = after->first;
  shard.pieces.erase(piece);
  begin = (begin + kBlock - 1) / kBlock * kBlock;
  end = end / kBlock * kBlock;
  if (begin >= end) return;
  const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  if (::fallocate(shard.file.get(), mode, static_cast<off_t>(begin),
                  static_cast<off_t>(end - begin)) == 0) {
    return;
  }
  MachineError error("{}: {}", (folder_ / set_.shard_name(place.shard)).string(),
                     std::strerror(errno));
  error.set_cause("the file system cannot give back a part of a file");
  error.set_advice("images.cache=FOLDER on another file system, or images.cache_bytes=0");
  throw error;
}

uint32_t ImageCache::cost(const ImagePlace& place) {
  if (place.bytes == 0) return 0;
  const uint64_t first = place.offset / kBlock, last = (place.offset + place.bytes - 1) / kBlock;
  return static_cast<uint32_t>((last - first + 1) * kBlock);
}

int64_t ImageCache::free_bytes() const {
  struct statvfs disk {};
  if (::statvfs(folder_.c_str(), &disk) != 0) return 0;
  return static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
}

}  // namespace lockstep
