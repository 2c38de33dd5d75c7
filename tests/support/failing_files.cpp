#include "support/failing_files.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
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
std::atomic<long> calls{0};
int tally = -1;  // preloaded: the file of LOCKSTEP_COUNTED_FILES, which gets the number of changes
constexpr int kMostFiles = 4096;
std::atomic<bool> watched[kMostFiles];  // descriptors of files below the root

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

void die() { ::kill(::getpid(), SIGKILL); }

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
  const long number = reads ? calls.load() : ++calls;
  if (tally >= 0 && !reads) {
    const std::string text = std::to_string(number) + "\n";
    next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite")(tally, text.data(), text.size(),
                                                                 0);
  }
  if (number < plan.nth || plan.nth <= 0) return 0;
  switch (plan.fault) {
    case FileFault::kNone:
      return 0;
    case FileFault::kKill:
      return !reads && number == plan.nth ? -1 : 0;
    case FileFault::kFull:
      return needs == Needs::kSpace ? ENOSPC : 0;
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
  return fd;
}

FILE* open_stream(const char* name, const char* path, const char* mode) {
  const bool concerned = below_root(AT_FDCWD, path), writes = strpbrk(mode, "wa+") != nullptr;
  if (refused(concerned, writes ? Needs::kSpace : Needs::kReading)) return nullptr;
  FILE* file = next<FILE* (*)(const char*, const char*)>(name)(path, mode);
  if (file != nullptr) watch(::fileno(file), concerned && writes);
  return file;
}

__attribute__((constructor)) void read_environment() {
  const char* text = ::getenv("LOCKSTEP_FAILING_FILES");
  char root[512], what[16];
  long nth = 0;
  if (text == nullptr || ::sscanf(text, "%511s %ld %15s", root, &nth, what) != 3) return;
  if (const char* counts = ::getenv("LOCKSTEP_COUNTED_FILES")) {
    tally = ::open(counts, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }
  const std::string fault = what;
  fail_files(root, nth,
             fault == "kill"     ? FileFault::kKill
             : fault == "ENOSPC" ? FileFault::kFull
             : fault == "EIO"    ? FileFault::kBroken
             : fault == "EROFS"  ? FileFault::kReadOnly
             : fault == "ESTALE" ? FileFault::kGone
             : fault == "slow"   ? FileFault::kSlow
                                 : FileFault::kNone);
}

}  // namespace

void fail_files(const char* root, long nth, FileFault fault) {
  ::strncpy(plan.root, root, sizeof plan.root - 1);
  plan.nth = nth;
  plan.fault = fault;
  calls = 0;
  active = true;
}

long stop_failing_files() {
  active = false;
  return calls;
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
  return write(fd, data, size);
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  if (write_refused(fd, [] {})) return -1;
  return next<ssize_t (*)(int, const struct iovec*, int)>("writev")(fd, parts, count);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t offset) {
  const auto write = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  if (write_refused(fd, [&] { write(fd, data, size / 2, offset); })) return -1;
  return write(fd, data, size, offset);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t offset) {
  return pwrite(fd, data, size, offset);
}

int fsync(int fd) {
  if (refused(is_watched(fd), Needs::kSpace)) return -1;
  return next<int (*)(int)>("fsync")(fd);
}

int fdatasync(int fd) {
  if (refused(is_watched(fd), Needs::kSpace)) return -1;
  return next<int (*)(int)>("fdatasync")(fd);
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
