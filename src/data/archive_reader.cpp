#include "data/archive_reader.h"

#include <archive.h>
#include <archive_entry.h>

#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::size_t kBlockBytes = 1 << 18;
constexpr std::size_t kNamesKept = 1000;  // for the advice, of an archive with a million entries

bool names(std::string_view path, std::string_view entry) {
  if (!path.ends_with(entry)) return false;
  return path.size() == entry.size() || path[path.size() - entry.size() - 1] == '/';
}

}  // namespace

ArchiveReader::ArchiveReader(const fs::path& path, const std::string& entry)
    : path_(path), entry_(entry), archive_(archive_read_new(), archive_read_free) {
  if (!fs::exists(path)) throw DataError("{}: no such file", path.string());
  archive_read_support_filter_all(archive_.get());
  archive_read_support_format_tar(archive_.get());
  if (archive_read_open_filename(archive_.get(), path.c_str(), kBlockBytes) != ARCHIVE_OK) fail();
  find_entry();
}

void ArchiveReader::fail() const {
  const char* cause = archive_error_string(archive_.get());
  DataError error("{}: no tar archive, damaged or cut off", path_.string());
  error.add_context("reading " + entry_);
  if (cause != nullptr) error.set_cause(cause);
  error.set_advice("remove it and fetch it again");
  throw error;
}

void ArchiveReader::find_entry() {
  std::vector<std::string> seen;
  while (true) {
    archive_entry* entry = nullptr;
    int status = archive_read_next_header(archive_.get(), &entry);
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) fail();
    const char* path = archive_entry_pathname(entry);
    if (path == nullptr || archive_entry_filetype(entry) != AE_IFREG) continue;
    if (names(path, entry_)) return;
    if (seen.size() < kNamesKept) seen.emplace_back(path);
  }
  throw DataError("{}: holds no {}{}", path_.string(), entry_, did_you_mean(entry_, seen));
}

std::size_t ArchiveReader::read(char* to, std::size_t most) {
  la_ssize_t n = archive_read_data(archive_.get(), to, most);
  if (n < 0) fail();
  return static_cast<std::size_t>(n);
}

void ArchiveReader::check_rest() {
  archive_entry* entry = nullptr;
  int status;
  do {
    status = archive_read_next_header(archive_.get(), &entry);
  } while (status == ARCHIVE_OK || status == ARCHIVE_WARN);
  if (status != ARCHIVE_EOF) fail();
}

std::string read_archived_file(const fs::path& archive, const std::string& entry) {
  ArchiveReader reader(archive, entry);
  std::string out;
  std::vector<char> buffer(kBlockBytes);
  while (std::size_t n = reader.read(buffer.data(), buffer.size())) out.append(buffer.data(), n);
  return out;
}

}  // namespace lockstep
