#include "data/fetch/archive_entries.h"

#include <archive.h>
#include <archive_entry.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

#include "base/error.h"
#include "base/output_file.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::size_t kEntryBytes = 1 << 18;
constexpr std::size_t kNamesKept = 1000;  // for the advice; an archive may have a million entries
constexpr std::array<std::string_view, 9> kEndings = {
    ".tar", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst"};

bool names(std::string_view path, std::string_view entry) {
  if (!path.ends_with(entry)) return false;
  return path.size() == entry.size() || path[path.size() - entry.size() - 1] == '/';
}

// Returns the content of what open(archive) opens: one compressed file, or a plain one.
template <typename Open>
std::string read_raw(const std::string& name, const Open& open) {
  std::unique_ptr<archive, int (*)(archive*)> file(archive_read_new(), archive_read_free);
  archive_read_support_filter_all(file.get());
  archive_read_support_format_raw(file.get());
  archive_read_support_format_empty(file.get());
  std::string out;
  std::vector<char> buffer(kEntryBytes);
  archive_entry* entry = nullptr;
  int status = open(file.get());
  if (status == ARCHIVE_OK) status = archive_read_next_header(file.get(), &entry);
  if (status == ARCHIVE_EOF) return out;  // an empty file
  la_ssize_t n = status == ARCHIVE_OK ? 1 : -1;
  while (n > 0) {
    n = archive_read_data(file.get(), buffer.data(), buffer.size());
    if (n > 0) out.append(buffer.data(), static_cast<std::size_t>(n));
  }
  if (n == 0) return out;
  DataError error("{}: damaged or cut off", name);
  if (const char* cause = archive_error_string(file.get())) error.set_cause(cause);
  throw error;
}

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
  archive_read_support_format_ar(archive_.get());
}

void ArchiveEntries::fail() const {
  const char* cause = archive_error_string(archive_.get());
  DataError error("{}: no tar or zip archive, damaged or cut off", name_);
  if (!wanted_.empty()) {
    error.add_context("reading " + wanted_);
  } else if (!entry_.empty()) {
    error.add_context("reading on after " + entry_);
  }
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

void ArchiveEntries::find(const std::string& entry) {
  wanted_ = entry;
  std::vector<std::string> seen;
  while (std::optional<std::string> path = next()) {
    if (names(*path, entry)) return;
    if (seen.size() < kNamesKept) seen.push_back(std::move(*path));
  }
  throw DataError("{}: holds no {}{}", name_, entry, did_you_mean(entry, seen));
}

std::size_t ArchiveEntries::read(char* to, std::size_t most) {
  la_ssize_t n = archive_read_data(archive_.get(), to, most);
  if (n < 0) fail();
  return static_cast<std::size_t>(n);
}

std::vector<std::byte> ArchiveEntries::read() {
  std::vector<std::byte> out;
  while (true) {
    std::size_t before = out.size();
    out.resize(before + kEntryBytes);
    std::size_t n = read(reinterpret_cast<char*>(out.data()) + before, kEntryBytes);
    out.resize(before + n);
    if (n == 0) return out;
  }
}

void ArchiveEntries::write(const fs::path& path) {
  std::ofstream file(path, std::ios::binary);
  if (!file) throw write_failure(path, errno);
  std::vector<char> piece(kEntryBytes);
  while (const std::size_t bytes = read(piece.data(), piece.size())) {
    if (!file.write(piece.data(), static_cast<std::streamsize>(bytes))) {
      throw write_failure(path, errno);
    }
  }
  file.close();
  if (!file) throw write_failure(path, errno);
}

void ArchiveEntries::check_rest() {
  while (next()) {
  }
}

void unpack_archive(const fs::path& archive, const fs::path& folder,
                    const std::function<bool(const fs::path&)>& wanted) {
  ArchiveEntries entries(archive);
  while (const std::optional<std::string> entry = entries.next()) {
    const fs::path path = fs::path(*entry).lexically_normal();
    if (!wanted(path)) continue;
    if (path.is_absolute() || *path.begin() == "..") {
      throw DataError("{}: {}: leads out of the archive", archive.string(), *entry);
    }
    std::error_code error;
    fs::create_directories((folder / path).parent_path(), error);  // else writing says it
    entries.write(folder / path);
  }
}

std::string read_archived_file(const fs::path& archive, const std::string& entry) {
  ArchiveEntries entries(archive);
  entries.find(entry);
  std::string out;
  std::vector<char> buffer(kEntryBytes);
  while (std::size_t n = entries.read(buffer.data(), buffer.size())) out.append(buffer.data(), n);
  return out;
}

std::string read_compressed_file(const fs::path& path) {
  if (!fs::exists(path)) throw DataError("{}: no such file", path.string());
  return read_raw(path.string(), [&](archive* file) {
    return archive_read_open_filename(file, path.c_str(), kEntryBytes);
  });
}

std::string decompressed(std::vector<std::byte> content, const std::string& name) {
  return read_raw(name, [&](archive* file) {
    return archive_read_open_memory(file, content.data(), content.size());
  });
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
