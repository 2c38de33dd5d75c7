#include "base/large_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace lockstep {

namespace {

// Blocks are as large as disks are fast with, and aligned as O_DIRECT wants it.
constexpr std::size_t kBlock = std::size_t{4} << 20, kAlignment = 4096;

bool set_direct(int file, bool on) {
  const int flags = ::fcntl(file, F_GETFL);
  return flags >= 0 && ::fcntl(file, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

// Returns errno, or 0 when all bytes are written. A file system may take O_DIRECT and refuse a
// write with it, or the rest of one of which it took a part: then the file goes on without.
int write_all(int file, bool direct, const std::byte* data, std::size_t size) {
  while (size > 0) {
    const ssize_t done = ::write(file, data, size);
    if (done < 0 && errno == EINVAL && direct && set_direct(file, false)) {
      direct = false;
    } else if (done < 0 && errno != EINTR) {
      return errno;
    } else if (done > 0) {
      data += done;
      size -= static_cast<std::size_t>(done);
    }
  }
  return 0;
}

}  // namespace

void LargeFile::FreePages::operator()(std::byte* pages) const { std::free(pages); }

LargeFile::LargeFile(const fs::path& path) : file_(path) {
  for (Block* block : {&filling_, &full_}) {
    block->reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kBlock)));
    if (!*block) throw std::bad_alloc();
  }
}

LargeFile::~LargeFile() {
  if (writing_.valid()) writing_.wait();
}

void LargeFile::write(const void* data, std::size_t size) {
  auto from = static_cast<const std::byte*>(data);
  while (size > 0) {
    const std::size_t part = std::min(size, kBlock - filled_);
    std::memcpy(filling_.get() + filled_, from, part);
    filled_ += part;
    from += part;
    size -= part;
    if (filled_ == kBlock) flush();
  }
}

// Waits for the block that is being written.
void LargeFile::wait() {
  const int problem = writing_.valid() ? writing_.get() : 0;
  if (problem != 0) file_.fail("written", problem);
}

// Hands what is filled to the disk, and takes its digest meanwhile. Only the last block is not
// full.
void LargeFile::flush() {
  wait();
  const bool whole = filled_ == kBlock;
  // A short file, or the end of a long one, is not worth the way around the cache.
  if (whole != direct_) direct_ = set_direct(file_.descriptor(), whole) && whole;
  std::swap(filling_, full_);
  const std::size_t size = std::exchange(filled_, 0);
  writing_ =
      std::async(std::launch::async, write_all, file_.descriptor(), direct_, full_.get(), size);
  digest_.update(full_.get(), size);
  bytes_ += static_cast<int64_t>(size);
}

WrittenFile LargeFile::finish() {
  flush();
  wait();
  file_.take_place();
  return {bytes_, digest_.hex()};
}

}  // namespace lockstep
