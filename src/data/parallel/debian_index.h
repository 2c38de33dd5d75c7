// What a mirror of Debian says of its packages: the files Release and Packages of a suite
// (https://wiki.debian.org/DebianRepository/Format).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/fetch/download.h"

namespace lockstep {

// A package of an index.
struct PackageRecord {
  std::string name, version;
  std::string path;  // below the mirror: "pool/main/g/gcc-12/gcc-12-locales_12.2.0-14_all.deb"
  FileCheck check;
};

// What a suite's Release says of the file `path` (as "main/binary-amd64/Packages.xz"): its size and
// SHA-256. `name` is that of the Release file, for messages. Throws DataError when it says nothing
// of it.
FileCheck check_in_release(std::string_view release, const std::string& name,
                           const std::string& path);

// The packages of these names, in their order, out of the text of an index. Of several versions the
// last is taken. Throws DataError for names that are not in it (with the nearest of those that are)
// and for a package whose paragraph is not whole.
std::vector<PackageRecord> find_in_index(std::string_view index, const std::string& name,
                                         const std::vector<std::string>& packages);

}  // namespace lockstep
