// Files of this machine as one tar stream, under names that they do not have here.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "launch/hosts/program_files.h"

namespace lockstep {

class Parcel {
 public:
  // The stream's first file, "manifest", holds the checksums of `pieces`.
  explicit Parcel(const std::vector<Piece>& pieces);
  void add(const std::string& name, const std::string& source);

  // Returns the command that prints the manifest. It and stream()'s serve as long as this lives.
  std::vector<std::string> list() const;
  // Returns the command that writes a tar stream of the manifest and `names`.
  std::vector<std::string> stream(const std::vector<std::string>& names) const;

 private:
  TemporaryFolder folder_;  // of links, which tar follows
  mutable int lists_ = 0;
};

}  // namespace lockstep
