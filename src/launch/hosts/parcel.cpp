#include "launch/hosts/parcel.h"

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {

Parcel::Parcel(const std::vector<Piece>& pieces) {
  write_file(folder_.path() / "manifest", checksums(pieces));
}

void Parcel::add(const std::string& name, const std::string& source) {
  const fs::path link = folder_.path() / name;
  if (!fs::is_symlink(link)) fs::create_symlink(fs::absolute(source), link);
}

std::vector<std::string> Parcel::list() const {
  return {"cat", (folder_.path() / "manifest").string()};
}

std::vector<std::string> Parcel::stream(const std::vector<std::string>& names) const {
  const std::string list = (folder_.path() / fmt::format("names{}", ++lists_)).string();
  write_file(list, "manifest\n" + join(names, "\n") + "\n");
  return {"tar", "-chf", "-", "--hard-dereference", "-C", folder_.path().string(), "-T", list};
}

}  // namespace lockstep
