// Files of this machine as a stream that a script of HostSetup reads.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "launch/hosts/program_files.h"

namespace lockstep {

// A folder of links that tar follows, so that files get other names in the archive than they have
// here.
class Parcel {
 public:
  explicit Parcel(const std::vector<Piece>& pieces) {
    write_file(folder_.path() / "manifest", checksums(pieces));
  }
  void add(const std::string& name, const std::string& source) {
    fs::path link = folder_.path() / name;
    if (!fs::is_symlink(link)) fs::create_symlink(fs::absolute(source), link);
  }
  std::vector<std::string> list() const { return {"cat", (folder_.path() / "manifest").string()}; }
  // Returns the command that writes a tar stream of the manifest and `names`.
  std::vector<std::string> stream(const std::vector<std::string>& names) const {
    std::string list = (folder_.path() / "names").string();
    std::string text = "manifest\n" + join(names, "\n") + "\n";
    write_file(list + std::to_string(++lists_), text);
    return {"tar", "-chf",
            "-",   "--hard-dereference",
            "-C",  folder_.path().string(),
            "-T",  list + std::to_string(lists_)};
  }

 private:
  TemporaryFolder folder_;
  mutable int lists_ = 0;
};

}  // namespace lockstep
