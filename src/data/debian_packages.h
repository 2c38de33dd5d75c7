// Debian packages as a source of data: fetched and unpacked with the system's own programs, never
// installed.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// The .deb files of these packages in `cache`, in the order of the names. What is not there yet is
// fetched with `apt-get download`. Throws MachineError with its message when that fails.
std::vector<fs::path> fetch_packages(const std::vector<std::string>& names, const fs::path& cache);

// All *.deb files directly in a folder, sorted. Throws DataError when there is none.
std::vector<fs::path> find_packages(const fs::path& folder);

// Unpacks the files of a package below `folder` (`dpkg-deb -x`). Throws DataError for a damaged
// package and MachineError when dpkg-deb is missing.
void unpack_package(const fs::path& package, const fs::path& folder);

}  // namespace lockstep
