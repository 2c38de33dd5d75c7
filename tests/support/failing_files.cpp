#include "support/failing_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <string>

namespace lockstep {

namespace {

struct Plan {
  char root[512] = "";
  long nth = 0;
  FileFault fault = FileFault::kNone;
};
Plan plan;
std::atomic<bool> active{false};

// What the disk has of a file, if the power fails.
struct FileOnDisk {
  std::atomic<uint64_t> inode;
  std::atomic<int64_t> synced;  // bytes
  std::atomic<bool> dirty;
};
// Shared by all processes that count together.
struct Shared {
  std::atomic<long> calls;
  std::atomic<bool> without_power;
  FileOnDisk files[1 << 14];
};
Shared* shared = nullptr;

void share(const char* path) {
  if (shared != nullptr) return;
  const int fd = path == nullptr ? -1 : ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0 && ::ftruncate(fd, sizeof(Shared)) != 0) ::abort();
  const int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, flags, fd, 0);
  if (memory == MAP_FAILED) ::abort();
  shared = static_cast<Shared*>(memory);
}

constexpr int kMostFiles = 4096;
std::atomic<bool> watched[kMostFiles];  // descriptors of files below the root

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

void die() { ::kill(::getpid(), SIGKILL); }

FileOnDisk* on_disk(uint64_t inode) {
  for (uint64_t i = 0; i < std::size(shared->files); ++i) {
    FileOnDisk& file = shared->files[(inode + i) % std::size(shared->files)];
    uint64_t expected = 0;
    if (file.inode == inode || file.inode.compare_exchange_strong(expected, inode) ||
        expected == inode) {
      return &file;
    }
  }
  ::abort();
}

// A file was opened to be changed, or was changed. What it had before is on the disk.
void note_change(int fd) {
  struct stat now {};
  if (::fstat(fd, &now) != 0 || !S_ISREG(now.st_mode)) return;
  FileOnDisk* file = on_disk(now.st_ino);
  if (now.st_size == 0) file->synced = 0;  // new, perhaps with the number of one that is gone
  if (!file->dirty.exchange(true) && now.st_size > 0) file->synced = now.st_size;
}

void note_sync(int fd) {
  struct stat now {};
  if (shared == nullptr || ::fstat(fd, &now) != 0 || !S_ISREG(now.st_mode)) return;
  FileOnDisk* file = on_disk(now.st_ino);
  file->synced = now.st_size;
  file->dirty = false;
}

void note_sync_of_all() {
  if (!active) return;
  for (FileOnDisk& file : shared->files) file.dirty = false;
}

// Names are kept, as by a file system that journals them in order; what was written over in place
// stays too.
int lose_unsynced(const char* path, const struct stat* now, int type, struct FTW*) {
  if (type != FTW_F || !S_ISREG(now->st_mode)) return 0;
  FileOnDisk* file = on_disk(now->st_ino);
  if (file->dirty && file->synced < now->st_size && ::truncate(path, file->synced) != 0) ::abort();
  return 0;
}

void fail_power() {
  if (!shared->without_power.exchange(true)) ::nftw(plan.root, lose_unsynced, 16, FTW_PHYS);
  die();
}

bool below_root(int folder, const char* path) {
  if (!active || path == nullptr) return false;
  std::string whole = path;
  if (path[0] != '/') {
    char start[4096] = "";
    if (folder == AT_FDCWD) {
      if (::getcwd(start, sizeof start) == nullptr) return false;
    } else {
      const std::string link = "/proc/self/fd/" + std::to_string(folder);
      const ssize_t length = ::readlink(link.c_str(), start, sizeof start - 1);
      if (length < 0) return false;
      start[length] = 0;
    }
    whole = std::string(start) + "/" + path;
  }
  return whole.compare(0, strlen(plan.root), plan.root) == 0;
}

bool is_watched(int fd) { return active && fd >= 0 && fd < kMostFiles && watched[fd]; }
void watch(int fd, bool on) {
  if (fd >= 0 && fd < kMostFiles) watched[fd] = on;
}

enum class Needs { kSpace, kWriting, kReading };

// Counts a change. Returns the error that it shall have, -1 for the change that kills, or 0.
int counted(Needs needs) {
  const bool reads = needs == Needs::kReading;
  const long number = reads ? shared->calls.load() : ++shared->calls;
  if (!reads && shared->without_power) die();
  if (number < plan.nth || plan.nth <= 0) return 0;
  switch (plan.fault) {
    case FileFault::kNone:
      return 0;
    case FileFault::kKill:
      return !reads && number == plan.nth ? -1 : 0;
    case FileFault::kFull:
      return needs == Needs::kSpace ? ENOSPC : 0;
    case FileFault::kQuota:
      return needs == Needs::kSpace ? EDQUOT : 0;
    case FileFault::kPower:
      if (!reads) fail_power();
      return 0;
    case FileFault::kBroken:
      return !reads && number == plan.nth ? EIO : 0;
    case FileFault::kSlow:
      if (!reads) ::usleep(20'000);
      return 0;
    case FileFault::kReadOnly:
      return reads ? 0 : EROFS;
    case FileFault::kGone:
      return ESTALE;
  }
  return 0;
}

// Returns whether the call is refused; errno says why. Kills the process where that is planned.
bool refused(bool concerned, Needs needs) {
  if (!concerned) return false;
  const int error = counted(needs);
  if (error < 0) die();
  if (error > 0) errno = error;
  return error > 0;
}

// As refused(), of a write, of which `half` is done before the process is killed.
template <class Half>
bool write_refused(int fd, const Half& half) {
  if (!is_watched(fd)) return false;
  const int error = counted(Needs::kSpace);
  if (error < 0) {
    half();
    die();
  }
  if (error > 0) errno = error;
  return error > 0;
}

bool opens_to_change(int flags) { return (flags & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR)) != 0; }

Needs needs_of(int flags) {
  if ((flags & O_CREAT) != 0) return Needs::kSpace;
  return opens_to_change(flags) ? Needs::kWriting : Needs::kReading;
}

int opened(int fd, bool concerned, int flags) {
  watch(fd, concerned && opens_to_change(flags));
  if (is_watched(fd)) note_change(fd);
  return fd;
}

FILE* open_stream(const char* name, const char* path, const char* mode) {
  const bool concerned = below_root(AT_FDCWD, path), writes = strpbrk(mode, "wa+") != nullptr;
  if (refused(concerned, writes ? Needs::kSpace : Needs::kReading)) return nullptr;
  FILE* file = next<FILE* (*)(const char*, const char*)>(name)(path, mode);
  if (file == nullptr) return nullptr;
  watch(::fileno(file), concerned && writes);
  if (is_watched(::fileno(file))) note_change(::fileno(file));
  return file;
}

void begin(const char* root, long nth, FileFault fault) {
  ::strncpy(plan.root, root, sizeof plan.root - 1);
  plan.nth = nth;
  plan.fault = fault;
  active = true;
}

__attribute__((constructor)) void read_environment() {
  const char* text = ::getenv("LOCKSTEP_FAILING_FILES");
  char root[512], what[16], words[640] = "";
  long nth = 0;
  if (text != nullptr && text[0] == '@') {
    FILE* file = ::fopen(text + 1, "re");
    if (file == nullptr) return;
    text = ::fgets(words, sizeof words, file);
    ::fclose(file);
  }
  if (text == nullptr || ::sscanf(text, "%511s %ld %15s", root, &nth, what) != 3) return;
  share(::getenv("LOCKSTEP_COUNTED_FILES"));
  const std::string fault = what;
  begin(root, nth,
        fault == "kill"     ? FileFault::kKill
        : fault == "power"  ? FileFault::kPower
        : fault == "ENOSPC" ? FileFault::kFull
        : fault == "EDQUOT" ? FileFault::kQuota
        : fault == "EIO"    ? FileFault::kBroken
        : fault == "EROFS"  ? FileFault::kReadOnly
        : fault == "ESTALE" ? FileFault::kGone
        : fault == "slow"   ? FileFault::kSlow
                            : FileFault::kNone);
}

}  // namespace

void fail_files(const char* root, long nth, FileFault fault) {
  share(nullptr);
  shared->calls = 0;
  shared->without_power = false;
  begin(root, nth, fault);
}

long stop_failing_files() {
  active = false;
  return shared->calls;
}

}  // namespace lockstep

using namespace lockstep;

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  const bool concerned = below_root(AT_FDCWD, path);
  if (refused(concerned, needs_of(flags))) return -1;
  return opened(next<int (*)(const char*, int, mode_t)>("open")(path, flags, mode), concerned,
                flags);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  return open(path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  const bool concerned = below_root(folder, path);
  if (refused(concerned, needs_of(flags))) return -1;
  return opened(next<int (*)(int, const char*, int, mode_t)>("openat")(folder, path, flags, mode),
                concerned, flags);
}

int close(int fd) {
  watch(fd, false);
  return next<int (*)(int)>("close")(fd);
}

FILE* fopen(const char* path, const char* mode) { return open_stream("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return open_stream("fopen64", path, mode); }

size_t fwrite(const void* data, size_t size, size_t count, FILE* file) {
  const auto write = next<size_t (*)(const void*, size_t, size_t, FILE*)>("fwrite");
  const auto half = [&] {
    write(data, 1, size * count / 2, file);
    next<int (*)(FILE*)>("fflush")(file);
  };
  if (write_refused(::fileno(file), half)) return 0;
  if (is_watched(::fileno(file))) note_change(::fileno(file));
  return write(data, size, count, file);
}

int fflush(FILE* file) {
  if (file != nullptr && refused(is_watched(::fileno(file)), Needs::kSpace)) return EOF;
  return next<int (*)(FILE*)>("fflush")(file);
}

int fclose(FILE* file) {
  watch(::fileno(file), false);
  return next<int (*)(FILE*)>("fclose")(file);
}

ssize_t write(int fd, const void* data, size_t size) {
  const auto write = next<ssize_t (*)(int, const void*, size_t)>("write");
  if (write_refused(fd, [&] { write(fd, data, size / 2); })) return -1;
  if (is_watched(fd)) note_change(fd);
  return write(fd, data, size);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  if (write_refused(fd, [] {})) return -1;
  if (is_watched(fd)) note_change(fd);
  return next<ssize_t (*)(int, const struct iovec*, int)>("writev")(fd, parts, count);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  const auto write = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  if (write_refused(fd, [&] { write(fd, data, size / 2, offset); })) return -1;
  if (is_watched(fd)) note_change(fd);
  return write(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return pwrite(fd, data, size, offset);
}

int fsync(int fd) {
  if (refused(is_watched(fd), Needs::kSpace)) return -1;
  note_sync(fd);
  return next<int (*)(int)>("fsync")(fd);
}

int fdatasync(int fd) {
  if (refused(is_watched(fd), Needs::kSpace)) return -1;
  note_sync(fd);
  return next<int (*)(int)>("fdatasync")(fd);
}

int syncfs(int fd) {
  note_sync_of_all();
  return next<int (*)(int)>("syncfs")(fd);
}

void sync() {
  note_sync_of_all();
  next<void (*)()>("sync")();
}

int ftruncate(int fd, off_t size) {
  if (refused(is_watched(fd), Needs::kSpace)) return -1;
  return next<int (*)(int, off_t)>("ftruncate")(fd, size);
}

int rename(const char* from, const char* to) {
  if (refused(below_root(AT_FDCWD, from) || below_root(AT_FDCWD, to), Needs::kWriting)) return -1;
  return next<int (*)(const char*, const char*)>("rename")(from, to);
}

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) {
  if (refused(below_root(from_folder, from) || below_root(to_folder, to), Needs::kWriting))
    return -1;
  return next<int (*)(int, const char*, int, const char*, unsigned)>("renameat2")(
      from_folder, from, to_folder, to, flags);
}

int unlink(const char* path) {
  if (refused(below_root(AT_FDCWD, path), Needs::kWriting)) return -1;
  return next<int (*)(const char*)>("unlink")(path);
}

int unlinkat(int folder, const char* path, int flags) {
  if (refused(below_root(folder, path), Needs::kWriting)) return -1;
  return next<int (*)(int, const char*, int)>("unlinkat")(folder, path, flags);
}

int remove(const char* path) {
  if (refused(below_root(AT_FDCWD, path), Needs::kWriting)) return -1;
  return next<int (*)(const char*)>("remove")(path);
}

int rmdir(const char* path) {
  if (refused(below_root(AT_FDCWD, path), Needs::kWriting)) return -1;
  return next<int (*)(const char*)>("rmdir")(path);
}

int mkdir(const char* path, mode_t mode) {
  if (refused(below_root(AT_FDCWD, path), Needs::kSpace)) return -1;
  return next<int (*)(const char*, mode_t)>("mkdir")(path, mode);
}

int link(const char* from, const char* to) {
  if (refused(below_root(AT_FDCWD, to), Needs::kSpace)) return -1;
  return next<int (*)(const char*, const char*)>("link")(from, to);
}

int symlink(const char* to, const char* path) {
  if (refused(below_root(AT_FDCWD, path), Needs::kSpace)) return -1;
  return next<int (*)(const char*, const char*)>("symlink")(to, path);
}

}  // extern "C"
