// Downloads files with libcurl. A download resumes after an interruption, retries, verifies
// checksums, and the file appears whole or not at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// The expected size and checksums of a file; empty or negative: unknown.
struct FileCheck {
  int64_t bytes = -1;
  std::string sha256, md5;  // lower-case hexadecimal digits

  bool has_checksum() const { return !sha256.empty() || !md5.empty(); }
};

struct Download {
  std::string url;
  fs::path path;  // of the local file
  FileCheck check;
  std::vector<std::string> headers;  // HTTP headers to send, e.g. "Authorization: ..."
  fs::path part = {};                // the partial file; empty: PATH.part
};

struct DownloadOptions {
  int attempts = 8;                             // how many in a row may make no progress
  std::chrono::milliseconds first_pause{1000};  // before the second attempt; doubles up to a minute
  std::chrono::seconds connect_timeout{30};     // to reach the server
  std::chrono::seconds stall_timeout{30};       // without a byte, before the transfer is aborted
};

// Downloads a file. The data that have arrived are kept as PATH.part, and the server's validator
// (ETag or Last-Modified) in PATH.part.mark. So a later call resumes where this one stopped (Range
// and If-Range, RFC 9110 section 13.1.5), or starts again if the file on the server has changed.
// Proxies are those of the environment (http_proxy, https_proxy, no_proxy). A file that exists
// already is verified and kept. Throws DataError for errors that a retry does not cure (404, a
// wrong size or checksum) and MachineError for all others (no route, stalled, disk full).
void download(const Download& wanted, const DownloadOptions& options = {});

// Throws DataError when the file does not match the check.
void check_file(const fs::path& path, const FileCheck& check);

}  // namespace lockstep
