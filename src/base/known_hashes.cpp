#include "base/known_hashes.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/digest.h"
#include "base/error.h"

namespace lockstep {

namespace {

constexpr int64_t kNanoseconds = 1000000000;
constexpr int64_t kDaysKept = 60;
// A file may change again within one tick of its file system's clock, and keep its times.
constexpr int64_t kTooFresh = 2 * kNanoseconds;

int64_t nanoseconds(const timespec& time) { return time.tv_sec * kNanoseconds + time.tv_nsec; }

std::string signature_of(const struct stat& s) {
  return fmt::format("{} {} {} {} {}", s.st_dev, s.st_ino, s.st_size, nanoseconds(s.st_mtim),
                     nanoseconds(s.st_ctim));
}

struct stat status_of(const fs::path& path) {
  struct stat out {};
  if (::stat(path.c_str(), &out) != 0) {
    throw DataError("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  return out;
}

}  // namespace

fs::path KnownHashes::default_file() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return fs::path(cache) / "lockstep/hashes";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? fs::path(home) / ".cache/lockstep/hashes" : fs::path();
}

KnownHashes::KnownHashes(fs::path file)
    : file_(std::move(file)), today_(std::time(nullptr) / 86400) {
  std::error_code absent;
  if (!file_.empty() && fs::is_regular_file(file_, absent)) read();
}

KnownHashes::~KnownHashes() {
  if (!changed_ || file_.empty()) return;
  std::string text;
  for (const auto& [path, entry] : entries_) {
    if (today_ - entry.day > kDaysKept) continue;
    text += fmt::format("{} {} {} {}\n", entry.sha256, entry.day, entry.signature, path);
  }
  try {
    std::error_code failed;
    fs::create_directories(file_.parent_path(), failed);
    write_file(file_, text);
  } catch (const Error&) {  // a home that cannot be written: the files are read again next time
  }
}

// Passes over lines that it does not understand.
void KnownHashes::read() {
  try {
    for_each_line(file_, [&](std::string_view line, int64_t) {
      constexpr int kFields = 7;  // in front of the path
      std::size_t at = 0, day = 0, signature = 0;
      for (int i = 0; i < kFields && at != std::string_view::npos; ++i) {
        if (i == 1) day = at;
        if (i == 2) signature = at;
        at = line.find(' ', at);
        if (at != std::string_view::npos) ++at;
      }
      if (at == std::string_view::npos || day != 65) return;
      Entry entry{.sha256 = std::string(line.substr(0, 64)),
                  .signature = std::string(line.substr(signature, at - 1 - signature))};
      std::from_chars(line.data() + day, line.data() + signature, entry.day);
      entries_[std::string(line.substr(at))] = std::move(entry);
    });
  } catch (const Error&) {
    entries_.clear();
  }
}

std::string KnownHashes::sha256(const fs::path& path) {
  const std::string name = fs::absolute(path).lexically_normal().string();
  const struct stat before = status_of(path);
  const std::string signature = signature_of(before);
  const auto found = entries_.find(name);
  if (found != entries_.end() && found->second.signature == signature) {
    changed_ |= found->second.day != today_;
    found->second.day = today_;
    return found->second.sha256;
  }
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::string hash = sha256_of_file(path);
  bytes_read_ += before.st_size;
  const bool settled = nanoseconds(now) - nanoseconds(before.st_mtim) > kTooFresh &&
                       nanoseconds(now) - nanoseconds(before.st_ctim) > kTooFresh &&
                       signature_of(status_of(path)) == signature;
  if (settled && name.find('\n') == std::string::npos) {
    entries_[name] = {.sha256 = hash, .day = today_, .signature = signature};
    changed_ = true;
  }
  return hash;
}

}  // namespace lockstep
