// Describes WMT's archives, what is known about them, and how they are fetched.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "data/fetch/download.h"

namespace lockstep {

// An archive that contains a text in two languages.
struct WmtArchive {
  std::string name;   // of the local file
  std::string place;  // path on the server and on a mirror
  std::string server;
  FileCheck check;
  std::string source_entry, target_entry;  // file names (English and German)
  int64_t pairs = 0;                       // approximate; only for the progress line
};

// The training texts of WMT16 English-German that OpenSeq2Seq's get_en_de.sh concatenates, in its
// order.
const std::vector<WmtArchive>& wmt16_training_archives();
// The archive of newstest2013, 3,000 lines.
const WmtArchive& wmt13_test_archive();
// The archive of newstest2014: "filtered" has the 2,737 lines on which the systems of WMT14 were
// ranked (sacreBLEU's wmt14), "full" has all 3,003 (wmt14/full).
const WmtArchive& wmt14_test_archive(bool full);

struct FetchOptions {
  // A folder with the archives (under their name or their place), or the URL of a server that has
  // them under their place; empty: WMT's own servers.
  std::string mirror;
  // A file in the format of sha256sum or md5sum, whose checksums replace those known here; "none":
  // accept any content; empty: use those known here.
  std::string checksums;
  DownloadOptions download;
};

// Returns the archives with the checks that `options` asks for. Throws ConfigError or DataError for
// an unusable checksum file.
std::vector<WmtArchive> with_checks(std::vector<WmtArchive> archives, const FetchOptions& options);

// Returns the paths of the archives, which all exist and are verified, in the mirror's folder or in
// `cache`.
std::vector<fs::path> fetch_archives(const std::vector<WmtArchive>& archives, const fs::path& cache,
                                     const FetchOptions& options);

}  // namespace lockstep
