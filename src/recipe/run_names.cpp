#include "recipe/run_names.h"

#include <algorithm>

#include "base/error.h"
#include "launch/hosts/remote.h"

namespace lockstep {

namespace {

// Returns "flowers" for "../shared/flowers/" and "train" for "train.en.gz".
std::string own_name(const fs::path& data) {
  const fs::path clean = fs::absolute(data).lexically_normal();
  const fs::path last = clean.has_filename() ? clean : clean.parent_path();
  std::string name = last.filename().string();
  if (!fs::is_directory(data)) name = name.substr(0, name.find('.', 1));
  for (char& c : name) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    if (!plain) c = '-';
  }
  return name.find_first_not_of("-.") == std::string::npos ? "mine" : name;
}

// Returns `path`, or `path` with the first number that makes it new.
std::string new_path(const std::string& path) {
  if (!fs::exists(path)) return path;
  for (int number = 2;; ++number) {
    const std::string next = fmt::format("{}-{}", path, number);
    if (!fs::exists(next)) return next;
  }
}

}  // namespace

RunNames choose_names(const fs::path& data, const std::string& out, bool prepared) {
  const std::string name = out.empty() ? own_name(data) : fs::path(out).stem().string();
  return {.config = out.empty() ? name + ".toml" : out,
          .data = prepared ? data.lexically_normal().string() : new_path("data/" + name),
          .run = new_path("runs/" + name)};
}

void require_no_file(const fs::path& config) {
  if (!fs::exists(fs::symlink_status(config))) return;
  ConfigError error("{}: is there already, and is not overwritten", config.string());
  error.set_advice("--out FILE.toml for another name");
  throw error;
}

std::string command_line(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || std::string_view("-_./=:,@+%").find(c) != std::string::npos;
    });
    out += (out.empty() ? "" : " ") + (plain ? word : shell_quote(word));
  }
  return out;
}

}  // namespace lockstep
