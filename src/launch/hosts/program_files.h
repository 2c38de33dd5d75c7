// This very program as files that run on another machine: itself, its recipes and the shared
// libraries that it has loaded, the module for GPUs among them where this torch has CUDA, except
// the C library and the drivers, which belong to the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

// A file to bring to hosts.
struct Piece {
  std::string source;  // where it is here
  std::string path;    // where it goes, below the folder that is filled: "lib/libc10.so"
  std::string sha256;
  int64_t bytes = 0;
};

struct ProgramFiles {
  std::vector<Piece> pieces;          // sorted by path; bin/lockstep is the program
  std::string hash;                   // of all paths and contents: the name of its folder on a host
  std::vector<std::string> packages;  // Debian packages of the libraries left out
  int64_t bytes() const;
};

// `without_system`: libraries that packages of this Debian system provide are left out, and the
// packages named. Throws DataError when a file cannot be read.
ProgramFiles program_files(bool without_system);

// "file  path" lines as sha256sum --check reads them.
std::string checksums(const std::vector<Piece>& pieces);

// Every regular file below `path`, or the one file that it is, with paths below `path`; symbolic
// links to files count as files, those to folders are passed over. Throws ConfigError when it is
// not there or a name holds a line break or backslash.
std::vector<Piece> files_below(const std::string& path);

}  // namespace lockstep
