// Parses what a Debian mirror says about its packages: the files Release and Packages of a suite
// (https://wiki.debian.org/DebianRepository/Format).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/fetch/download.h"

namespace lockstep {

// One package of an index.
struct PackageRecord {
  std::string name, version;
  std::string path;  // on the mirror: "pool/main/g/gcc-12/gcc-12-locales_12.2.0-14_all.deb"
  FileCheck check;
};

// Returns the size and SHA-256 that a suite's Release gives for the file `path` (e.g.
// "main/binary-amd64/Packages.xz"). `name` is the name of the Release file, for messages. Throws
// DataError when Release does not list the file.
FileCheck check_in_release(std::string_view release, const std::string& name,
                           const std::string& path);

// Returns whether the suite's Release lists the file `path` with a SHA-256.
bool is_in_release(std::string_view release, const std::string& path);

// Returns all packages of an index, of several versions the last. Throws DataError for an index
// without packages and for an incomplete paragraph.
std::vector<PackageRecord> all_in_index(std::string_view index, const std::string& name);

// Returns the named packages from the text of an index, in the order of the names. Of several
// versions it takes the last. Throws DataError for names that the index lacks (with the most
// similar name) and for a package whose paragraph is incomplete.
std::vector<PackageRecord> find_in_index(std::string_view index, const std::string& name,
                                         const std::vector<std::string>& packages);

}  // namespace lockstep
