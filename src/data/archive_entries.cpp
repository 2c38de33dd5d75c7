#include "data/archive_entries.h"

#include <archive.h>
#include <archive_entry.h>

#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace lockstep {

namespace {

constexpr std::size_t kEntryBytes = 1 << 18;
constexpr std::array<std::string_view, 9> kEndings = {
    ".tar", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst"};

}  // namespace

ArchiveEntries::ArchiveEntries(const fs::path& path)
    : name_(path.string()), archive_(archive_read_new(), archive_read_free) {
  if (!fs::exists(path)) throw DataError("{}: no such file", name_);
  support();
  if (archive_read_open_filename(archive_.get(), path.c_str(), kEntryBytes) != ARCHIVE_OK) fail();
}

ArchiveEntries::ArchiveEntries(std::vector<std::byte> content, std::string name)
    : name_(std::move(name)),
      content_(std::move(content)),
      archive_(archive_read_new(), archive_read_free) {
  support();
  if (archive_read_open_memory(archive_.get(), content_.data(), content_.size()) != ARCHIVE_OK) {
    fail();
  }
}

void ArchiveEntries::support() {
  archive_read_support_filter_all(archive_.get());
  archive_read_support_format_tar(archive_.get());
  archive_read_support_format_zip(archive_.get());
}

void ArchiveEntries::fail() const {
  const char* cause = archive_error_string(archive_.get());
  DataError error("{}: no tar or zip archive, damaged or cut off", name_);
  if (!entry_.empty()) error.add_context("reading on after " + entry_);
  if (cause != nullptr) error.set_cause(cause);
  throw error;
}

std::optional<std::string> ArchiveEntries::next() {
  while (true) {
    archive_entry* entry = nullptr;
    int status = archive_read_next_header(archive_.get(), &entry);
    if (status == ARCHIVE_EOF) return std::nullopt;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) fail();
    const char* path = archive_entry_pathname(entry);
    if (path == nullptr || archive_entry_filetype(entry) != AE_IFREG) continue;
    entry_ = path;
    while (entry_.starts_with("./")) entry_.erase(0, 2);
    return entry_;
  }
}

std::vector<std::byte> ArchiveEntries::read() {
  std::vector<std::byte> out;
  while (true) {
    std::size_t before = out.size();
    out.resize(before + kEntryBytes);
    la_ssize_t n = archive_read_data(archive_.get(), out.data() + before, kEntryBytes);
    if (n < 0) fail();
    out.resize(before + static_cast<std::size_t>(n));
    if (n == 0) return out;
  }
}

bool is_archive_name(std::string_view file) {
  for (std::string_view ending : kEndings) {
    if (file.ends_with(ending)) return true;
  }
  return false;
}

std::string archive_stem(const fs::path& path) {
  std::string name = path.filename().string();
  std::string_view longest;
  for (std::string_view ending : kEndings) {
    if (name.ends_with(ending) && ending.size() > longest.size()) longest = ending;
  }
  return name.substr(0, name.size() - longest.size());
}

}  // namespace lockstep
