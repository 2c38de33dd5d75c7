// Writes a mirror of Debian for tests: packages, their index and the Release of a suite.
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <map>
#include <stdexcept>
#include <string>

#include "base/digest.h"
#include "base/file.h"

namespace lockstep::testing {

using Files = std::map<std::string, std::string>;  // path -> content

// Returns an archive in memory; `format` and `filter` are functions of libarchive.
inline std::string archive_of(const Files& files, int (*format)(archive*),
                              int (*filter)(archive*) = archive_write_add_filter_none) {
  std::size_t size = 1 << 16, used = 0;
  for (const auto& [path, content] : files) size += path.size() + content.size() + 2048;
  std::string out(size, '\0');
  archive* writer = archive_write_new();
  format(writer);
  filter(writer);
  archive_write_set_bytes_in_last_block(writer, 1);
  if (archive_write_open_memory(writer, out.data(), out.size(), &used) != ARCHIVE_OK) {
    throw std::runtime_error(archive_error_string(writer));
  }
  for (const auto& [path, content] : files) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, path.c_str());
    archive_entry_set_size(entry, static_cast<la_int64_t>(content.size()));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    archive_write_header(writer, entry);
    archive_write_data(writer, content.data(), content.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

inline std::string gz_of(const std::string& text) {
  return archive_of({{"text", text}}, archive_write_set_format_raw, archive_write_add_filter_gzip);
}

inline std::string xz_of(const std::string& text) {
  return archive_of({{"text", text}}, archive_write_set_format_raw, archive_write_add_filter_xz);
}

// Returns a package as dpkg-deb writes it.
inline std::string deb_of(const Files& files) {
  std::string data =
      archive_of(files, archive_write_set_format_gnutar, archive_write_add_filter_xz);
  return archive_of(
      {{"control.tar.xz", xz_of("")}, {"data.tar.xz", data}, {"debian-binary", "2.0\n"}},
      archive_write_set_format_ar_svr4);
}

// A mirror with one suite in `folder`, to be served over HTTP.
class DebianMirrorFolder {
 public:
  DebianMirrorFolder(fs::path folder, std::string suite)
      : folder_(std::move(folder)), suite_(std::move(suite)) {}

  void add(const std::string& name, const Files& files, const std::string& version = "1.0-1") {
    const std::string path = fmt::format("pool/main/{}_{}_all.deb", name, version);
    put(path, deb_of(files));
    index_ += fmt::format(
        "Package: {}\nVersion: {}\nInstalled-Size: 7\nFilename: {}\nSize: {}\nSHA256: {}\n"
        "Description: invented\n\n",
        name, version, path, fs::file_size(folder_ / path), sha256_of_file(folder_ / path));
    for (const auto& [file, content] : files) {
      contents_ +=
          fmt::format("{:<60} tests/{}\n", file.substr(file.starts_with("./") ? 2 : 0), name);
    }
  }

  // Writes the indices of what was added so far, and a Release with their hashes.
  void publish() {
    std::string hashes;
    for (const auto& [path, content] :
         Files{{"main/binary-amd64/Packages.xz", xz_of(index_)},
               {"main/Contents-all.gz", gz_of(contents_)},
               {"main/Contents-amd64.gz", gz_of("usr/bin/nothing tests/nothing\n")}}) {
      const fs::path file = put("dists/" + suite_ + "/" + path, content);
      hashes += fmt::format(" {1} {2} {0}\n {1} 1 {0}.old\n", path, sha256_of_file(file),
                            fs::file_size(file));
    }
    put("dists/" + suite_ + "/Release",
        fmt::format("Origin: tests\nMD5Sum:\n 0123 9 main/binary-amd64/Packages.xz\nSHA256:\n{}",
                    hashes));
  }

 private:
  fs::path put(const std::string& path, const std::string& content) const {
    fs::create_directories((folder_ / path).parent_path());
    write_file(folder_ / path, content);
    return folder_ / path;
  }

  fs::path folder_;
  std::string suite_, index_, contents_;
};

}  // namespace lockstep::testing
