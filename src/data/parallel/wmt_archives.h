// Where WMT's archives are, what is known of them, and how they come to this machine.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "data/fetch/download.h"

namespace lockstep {

// An archive with one text in two languages.
struct WmtArchive {
  std::string name;   // of the file here
  std::string place;  // path on the server, also below a mirror
  std::string server;
  FileCheck check;
  std::string source_entry, target_entry;  // files in it (English and German)
  int64_t pairs = 0;                       // about; for the progress line only
};

// The training texts of WMT16 English-German that OpenSeq2Seq's get_en_de.sh joins, in its order.
const std::vector<WmtArchive>& wmt16_training_archives();
// newstest2013, 3,000 lines.
const WmtArchive& wmt13_test_archive();
// newstest2014: "filtered" has the 2,737 lines on which systems of WMT14 were ranked (sacreBLEU's
// wmt14), "full" all 3,003 (wmt14/full).
const WmtArchive& wmt14_test_archive(bool full);

struct FetchOptions {
  // A folder with the archives (under their name or their place), or the URL of a server that has
  // them under their place; empty: WMT's own servers.
  std::string mirror;
  // A file as sha256sum or md5sum write it, whose checksums take the place of those known here;
  // "none": take what comes. Empty: those known here.
  std::string checksums;
  DownloadOptions download;
};

// The archives with the checks that `options` ask for. Throws ConfigError or DataError for a
// checksum file that cannot be used.
std::vector<WmtArchive> with_checks(std::vector<WmtArchive> archives, const FetchOptions& options);

// Paths of the archives, all of them there and checked: in the mirror's folder or in `cache`.
std::vector<fs::path> fetch_archives(const std::vector<WmtArchive>& archives, const fs::path& cache,
                                     const FetchOptions& options);

}  // namespace lockstep
