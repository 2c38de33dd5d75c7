// Files from the network (libcurl): resumed after a break, retried, checked, whole or absent.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// What a file must be; empty or negative: not known.
struct FileCheck {
  int64_t bytes = -1;
  std::string sha256, md5;  // lower-case hexadecimal digits

  bool has_checksum() const { return !sha256.empty() || !md5.empty(); }
};

struct Download {
  std::string url;
  fs::path path;  // of the file on this machine
  FileCheck check;
  std::vector<std::string> headers;  // sent along, such as "Authorization: ..."
  fs::path part = {};                // what has arrived so far; empty: PATH.part
};

struct DownloadOptions {
  int attempts = 8;                             // without a byte of progress between them
  std::chrono::milliseconds first_pause{1000};  // before the second one; doubles up to a minute
  std::chrono::seconds connect_timeout{30};     // to reach the server
  std::chrono::seconds stall_timeout{30};       // without a byte, before the line is cut
};

// Fetches a file that is not there yet. What has arrived is kept as PATH.part, with the server's
// mark of the version (ETag or Last-Modified) in PATH.part.mark, so that a later call goes on where
// this one stopped (Range and If-Range, RFC 9110 section 13.1.5) and starts again when the file on
// the server is another. Proxies are those of the environment (http_proxy, https_proxy, no_proxy).
// A file that is there is checked and kept. Throws DataError for what trying again does not mend
// (404, a wrong size or checksum) and MachineError for the rest (no route, stalled, disk full).
void download(const Download& wanted, const DownloadOptions& options = {});

// Throws DataError when the file is not what the check asks for.
void check_file(const fs::path& path, const FileCheck& check);

}  // namespace lockstep
