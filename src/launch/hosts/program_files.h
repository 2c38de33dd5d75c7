// Lists this program as files that run on another machine: the executable, its recipes and the
// shared libraries that it has loaded, with the GPU module where this torch has CUDA, but without
// the C library and the drivers, which belong to the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/known_hashes.h"

namespace lockstep {

// A file to copy to hosts.
struct Piece {
  std::string source;  // its path here
  std::string path;    // its path there, below the folder that is filled: "lib/libc10.so"
  std::string sha256;
  int64_t bytes = 0;
};

struct ProgramFiles {
  std::vector<Piece> pieces;          // sorted by path; bin/lockstep is the program
  std::string hash;                   // of all paths and contents; names its folder on a host
  std::vector<std::string> packages;  // Debian packages that provide the libraries left out
  std::string libc;                   // the glibc that it needs: "2.34"; empty: unknown
  int64_t bytes() const;
};

// `without_system` leaves out libraries that packages of this Debian system provide, and names the
// packages. Throws DataError when a file cannot be read.
ProgramFiles program_files(bool without_system);

// Returns "file  path" lines for sha256sum --check.
std::string checksums(const std::vector<Piece>& pieces);

// Returns every regular file below `path`, or `path` itself if it is one, with paths below `path`.
// Symbolic links count as what they lead to, but for those to a folder that they are in. Throws
// ConfigError when `path` does not exist or a name holds a line break or backslash.
std::vector<Piece> files_below(const std::string& path, KnownHashes& hashes);

}  // namespace lockstep
