// Debian packages as a source of data, on any Linux: fetched from a mirror over HTTP and unpacked
// here, without apt or dpkg, and never installed.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "data/fetch/download.h"

namespace lockstep {

// Where packages come from. Those wanted here hold data and are the same for every architecture, so
// that every machine gets the same ones, whatever its own system is.
struct DebianMirror {
  std::string url = "https://deb.debian.org/debian";
  std::string suite = "bookworm";
  DownloadOptions download;
};

// The .deb files of these packages in the folder CACHE/SUITE, in the order of the names. What is
// not there yet is fetched as the suite's index (component main) has it, and kept only with its
// SHA-256. The index itself is kept too and fetched again when the suite's Release has another.
// Release's signature is not checked: a mirror is trusted as far as its HTTPS is.
// Throws DataError for a suite or package that the mirror does not have and for wrong checksums,
// MachineError when nothing can be fetched or written.
std::vector<fs::path> fetch_packages(const std::vector<std::string>& names, const fs::path& cache,
                                     const DebianMirror& mirror);

// All *.deb files directly in a folder, sorted. Throws DataError when there is none.
std::vector<fs::path> find_packages(const fs::path& folder);

// Writes the regular files of a package below `folder`. Throws DataError for a damaged package or
// one with a path that leads out of the folder, MachineError when a file cannot be written.
void unpack_package(const fs::path& package, const fs::path& folder);

}  // namespace lockstep
