#include "data/parallel/debian_suite.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/ordered_parallel.h"
#include "data/fetch/archive_entries.h"
#include "data/lines/progress.h"

namespace lockstep {

namespace {

// This index lists the packages for all architectures besides those for amd64.
constexpr const char* kPackages = "main/binary-amd64/Packages.xz";
constexpr int kAttemptsOfRelease = 3;  // 3 s of pauses: tests whether the mirror answers

}  // namespace

DebianSuite::DebianSuite(const DebianMirror& mirror, fs::path cache)
    : mirror_(mirror), cache_(std::move(cache)) {
  while (mirror_.url.ends_with('/')) mirror_.url.pop_back();
  std::error_code failed;
  fs::create_directories(cache_, failed);
  if (failed) throw MachineError("{}: cannot be created: {}", cache_.string(), failed.message());
}

std::string DebianSuite::url() const { return mirror_.url + "/dists/" + mirror_.suite; }

fs::path DebianSuite::index(const std::string& path) {
  const FileCheck check = check_in_release(release(), url() + "/Release", path);
  fs::path file = cache_ / fs::path(path).filename();
  if (fs::exists(file) && sha256_of_file(file) != check.sha256) fs::remove(file);
  fetch({url() + "/" + path, file, check, {}});
  return file;
}

bool DebianSuite::has_index(const std::string& path) { return is_in_release(release(), path); }

std::vector<PackageRecord> DebianSuite::find(const std::vector<std::string>& names) {
  const std::string text = read_compressed_file(index(kPackages));
  try {
    return find_in_index(text, url() + "/" + kPackages, names);
  } catch (DataError& error) {
    error.set_advice("other packages: --packages; another place: --suite, --mirror");
    throw;
  }
}

std::vector<PackageRecord> DebianSuite::all() {
  return all_in_index(read_compressed_file(index(kPackages)), url() + "/" + kPackages);
}

fs::path DebianSuite::file_of(const PackageRecord& package) const {
  return cache_ / fs::path(package.path).filename();
}

bool DebianSuite::has(const PackageRecord& package) const {
  std::error_code absent;
  const std::uintmax_t bytes = fs::file_size(file_of(package), absent);
  return !absent && static_cast<int64_t>(bytes) == package.check.bytes;
}

void DebianSuite::fetch(const PackageRecord& package) const {
  fetch({mirror_.url + "/" + package.path, file_of(package), package.check, {}});
}

void DebianSuite::fetch(const std::vector<PackageRecord>& packages, int64_t at_once) const {
  int64_t bytes = 0;
  for (const PackageRecord& package : packages) bytes += package.check.bytes;
  Progress progress("packages", "bytes", bytes);
  int64_t done = 0;
  // A package that is there is checked too: the text in it is part of the corpus.
  ordered_parallel(
      static_cast<int64_t>(packages.size()), at_once,
      [&](int64_t i) {
        const PackageRecord& package = packages[static_cast<std::size_t>(i)];
        fetch(package);
        return package.check.bytes;
      },
      [&](int64_t more) { progress.update(done += more); });
}

void DebianSuite::fetch(const Download& wanted) const {
  try {
    download(wanted, mirror_.download);
  } catch (DataError& error) {
    error.set_advice("again in some minutes: the mirror may be in an update; or another --mirror");
    throw;
  }
}

const std::string& DebianSuite::release() {
  if (!release_.empty()) return release_;
  const fs::path path = cache_ / "Release";
  std::error_code ignored;
  fs::remove(path, ignored);
  DownloadOptions options = mirror_.download;
  options.attempts = std::min(options.attempts, kAttemptsOfRelease);
  try {
    download({url() + "/Release", path, {}, {}}, options);
  } catch (DataError& error) {
    error.add_context("looking for the suite " + mirror_.suite);
    error.set_advice(
        "a --suite that this mirror has; old ones move to --mirror "
        "http://archive.debian.org/debian");
    throw;
  }
  return release_ = read_file(path);
}

}  // namespace lockstep
