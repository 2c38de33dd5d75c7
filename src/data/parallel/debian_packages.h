// Debian packages as a source of data, on any Linux: they are fetched from a mirror over HTTP and
// unpacked without apt or dpkg, and are never installed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/fetch/archive_entries.h"
#include "data/fetch/download.h"

namespace lockstep {

// Where packages come from. The packages used here contain data and are the same for every
// architecture, so every machine gets the same ones, whatever its own system is.
struct DebianMirror {
  std::string url = "https://deb.debian.org/debian";
  std::string suite = "bookworm";
  DownloadOptions download;
};

// Returns the .deb files of these packages in the folder CACHE/SUITE, in the order of the names.
// Missing packages are fetched as the suite's index (component main) lists them and kept only if
// their SHA-256 is right. The index is cached too and fetched again when the suite's Release names
// another one. Release's signature is not verified: a mirror is trusted as far as its HTTPS is.
// Throws DataError for a suite or package that the mirror does not have and for wrong checksums,
// and MachineError when something cannot be fetched or written.
std::vector<fs::path> fetch_packages(const std::vector<std::string>& names, const fs::path& cache,
                                     const DebianMirror& mirror);

// Returns all *.deb files directly in a folder, sorted. Throws DataError when there is none.
std::vector<fs::path> find_packages(const fs::path& folder);

// Calls visit(path, entries) for every regular file of a package, its content being
// entries.read(). Throws DataError for a damaged package.
void for_each_file_of(const fs::path& package,
                      const std::function<void(const std::string&, ArchiveEntries&)>& visit);

// Writes the regular files of a package below `folder`. Throws DataError for a damaged package or a
// path that leads out of the folder, and MachineError when a file cannot be written.
void unpack_package(const fs::path& package, const fs::path& folder);

}  // namespace lockstep
