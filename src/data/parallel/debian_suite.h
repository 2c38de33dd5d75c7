// A suite of a Debian mirror: its indices and packages, fetched over HTTP into a cache and checked
// against Release (https://wiki.debian.org/DebianRepository/Format).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/parallel/debian_index.h"
#include "data/parallel/debian_packages.h"

namespace lockstep {

class DebianSuite {
 public:
  // `cache` is the folder CACHE/SUITE. Creates it; throws MachineError when that is not possible.
  DebianSuite(const DebianMirror& mirror, fs::path cache);

  std::string url() const;  // below which Release and the indices are

  // Returns the local copy of an index, e.g. "main/Contents-all.gz". A copy whose checksum is the
  // one in Release is kept, another one is fetched again. Release itself is fetched once for each
  // object: it is small and shows whether the copies are current. Throws as fetch_packages() does.
  fs::path index(const std::string& path);
  bool has_index(const std::string& path);  // whether Release lists it

  std::vector<PackageRecord> find(const std::vector<std::string>& names);
  // Returns all packages of the suite, in the order of the index.
  std::vector<PackageRecord> all();

  // Returns where the package is or will be.
  fs::path file_of(const PackageRecord& package) const;
  bool has(const PackageRecord& package) const;  // whether it is there whole
  void fetch(const PackageRecord& package) const;
  // Fetches those that are not there, `at_once` at a time, and shows the progress.
  void fetch(const std::vector<PackageRecord>& packages, int64_t at_once) const;

 private:
  void fetch(const Download& wanted) const;
  const std::string& release();

  DebianMirror mirror_;
  fs::path cache_;
  std::string release_;  // empty: not fetched yet
};

}  // namespace lockstep
