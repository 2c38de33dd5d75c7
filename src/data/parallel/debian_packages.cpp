#include "data/parallel/debian_packages.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "data/fetch/archive_entries.h"
#include "data/parallel/debian_suite.h"

namespace lockstep {

namespace {

void create_folders(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw MachineError("{}: cannot be created: {}", folder.string(), failed.message());
}

// Returns the file NAME_VERSION_ARCHITECTURE.deb, the newest if the cache holds several versions.
std::optional<fs::path> cached_package(const std::string& name, const fs::path& cache) {
  std::optional<fs::path> newest;
  for (const fs::directory_entry& entry : fs::directory_iterator(cache)) {
    const fs::path& path = entry.path();
    bool right = path.extension() == ".deb" && path.filename().string().starts_with(name + "_");
    if (!right) continue;
    if (!newest || fs::last_write_time(path) > fs::last_write_time(*newest)) newest = path;
  }
  return newest;
}

// Returns a path below `folder`. The names in archives are not trusted.
fs::path path_below(const fs::path& folder, const std::string& entry, const fs::path& package) {
  const fs::path path(entry);
  bool leads_out = path.is_absolute() || std::find(path.begin(), path.end(), "..") != path.end();
  if (leads_out) throw DataError("{}: {} leads out of the package", package.string(), entry);
  return folder / path;
}

void write_entry(const fs::path& path, ArchiveEntries& entries) {
  create_folders(path.parent_path());
  entries.write(path);
}

}  // namespace

std::vector<fs::path> fetch_packages(const std::vector<std::string>& names, const fs::path& cache,
                                     const DebianMirror& mirror) {
  const fs::path folder = cache / mirror.suite;
  create_folders(folder);
  std::vector<std::string> absent;
  for (const std::string& name : names) {
    if (!cached_package(name, folder)) absent.push_back(name);
  }
  if (!absent.empty()) {
    DebianSuite suite(mirror, folder);
    log_info("fetching the Debian packages {} from {} (not installed)", join(absent, " "),
             suite.url());
    for (const PackageRecord& package : suite.find(absent)) suite.fetch(package);
  }
  std::vector<fs::path> out;
  for (const std::string& name : names) out.push_back(cached_package(name, folder).value());
  return out;
}

std::vector<fs::path> find_packages(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (error) throw DataError("{}: cannot be read: {}", folder.string(), error.message());
  std::vector<fs::path> out;
  for (const fs::directory_entry& entry : entries) {
    if (entry.path().extension() == ".deb") out.push_back(entry.path());
  }
  if (out.empty()) throw DataError("{}: no Debian package (*.deb) in it", folder.string());
  std::sort(out.begin(), out.end());
  return out;
}

void for_each_file_of(const fs::path& package,
                      const std::function<void(const std::string&, ArchiveEntries&)>& visit) {
  try {
    ArchiveEntries parts(package);
    while (std::optional<std::string> part = parts.next()) {
      if (!part->starts_with("data.tar")) continue;
      ArchiveEntries files(parts.read(), package.string() + ": " + *part);
      while (std::optional<std::string> file = files.next()) visit(*file, files);
      return;
    }
    throw DataError("{}: no Debian package (no data.tar in it)", package.string());
  } catch (DataError& error) {
    error.set_advice("remove the file, so that it is fetched again");
    throw;
  }
}

void unpack_package(const fs::path& package, const fs::path& folder) {
  for_each_file_of(package, [&](const std::string& file, ArchiveEntries& entries) {
    write_entry(path_below(folder, file, package), entries);
  });
}

}  // namespace lockstep
