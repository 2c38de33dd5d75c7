#include "netlab/host_root.h"

#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace lockstep {

namespace {

// The folders that a system's packages fill.
constexpr const char* kSystemFolders[] = {"bin",    "sbin", "lib", "lib32", "lib64",
                                          "libx32", "usr",  "etc", "var",   "opt"};
constexpr const char* kEmptyFolders[] = {"proc", "sys", "dev", "run",
                                         "home", "srv", "mnt", "media"};

// The options of mount separate paths by ',' and ':'.
std::string escaped(const fs::path& path) {
  std::string out;
  for (char c : path.string()) {
    if (c == ',' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

void make_folder(const fs::path& path, fs::perms mode) {
  fs::create_directories(path);
  fs::permissions(path, mode);
}

void give(const fs::path& path, int user) {
  if (::lchown(path.c_str(), static_cast<uid_t>(user), static_cast<gid_t>(user)) != 0) {
    throw MachineError("cannot give {} to a virtual host's user: {}", path.string(),
                       std::strerror(errno));
  }
}

// Adds the overlay of a folder of this machine at `target`, whose changes are kept as `name`.
fs::path add_overlay(const HostRootOptions& options, const fs::path& lower, const fs::path& target,
                     const std::string& name, HostRoot& root) {
  const fs::path upper = options.folder / "changes" / name, work = options.folder / "work" / name;
  fs::create_directories(upper);
  fs::create_directories(work);
  fs::permissions(upper, fs::status(lower).permissions());
  root.overlays.push_back({root.folder / target.relative_path(),
                           fmt::format("lowerdir={},upperdir={},workdir={}", escaped(lower),
                                       escaped(upper), escaped(work))});
  return upper;
}

// The changed folder hides what the system has in it.
void hide_contents(const fs::path& changed, fs::perms mode) {
  make_folder(changed, mode);
  if (::setxattr(changed.c_str(), "trusted.overlay.opaque", "y", 1, 0) != 0) {
    throw MachineError("cannot hide the machine's {} from a virtual host: {}",
                       changed.filename().string(), std::strerror(errno));
  }
}

// Writes a file of accounts with one line of the name's.
void set_account(const HostRootOptions& options, const fs::path& changes, const char* file,
                 const std::string& line) {
  const fs::path changed = changes / file, given = options.system / "etc" / file;
  if (fs::exists(changed)) return;
  std::string text;
  for (const std::string& old : read_lines(given)) {
    if (!old.starts_with(options.user + ":")) text += old + "\n";
  }
  write_file(changed, text + line + "\n");
}

void add_user(const HostRootOptions& options, const fs::path& etc) {
  if (options.user == "root") return;
  const bool bash = fs::exists(options.system / "usr/bin/bash");
  set_account(options, etc, "passwd",
              fmt::format("{0}:*:{1}:{1}::{2}:{3}", options.user, options.user_id,
                          options.home.string(), bash ? "/bin/bash" : "/bin/sh"));
  set_account(options, etc, "group", fmt::format("{}:*:{}:", options.user, options.user_id));
}

void add_key(const HostRootOptions& options, const fs::path& home) {
  const fs::path folder = home / ".ssh", keys = folder / "authorized_keys";
  if (options.authorized_key.empty() || fs::exists(keys)) return;
  make_folder(folder, fs::perms{0700});
  write_file(keys, options.authorized_key);
  fs::permissions(keys, fs::perms{0600});
  give(folder, options.user_id);
  give(keys, options.user_id);
}

}  // namespace

HostRoot make_host_root(const HostRootOptions& options) {
  if (!fs::exists(options.system / "usr") || !fs::exists(options.system / "etc/passwd")) {
    throw ConfigError("host.system: {} is not a root: no usr and etc/passwd there",
                      options.system.string());
  }
  HostRoot root{.folder = options.folder / "root", .overlays = {}};
  make_folder(root.folder, fs::perms{0755});
  for (const char* name : kEmptyFolders) make_folder(root.folder / name, fs::perms{0755});
  make_folder(root.folder / "tmp", fs::perms{01777});
  make_folder(root.folder / "root", fs::perms{0700});
  for (const char* name : kSystemFolders) {
    const fs::path lower = options.system / name, target = root.folder / name;
    if (fs::is_symlink(lower)) {
      if (!fs::is_symlink(target)) fs::create_symlink(fs::read_symlink(lower), target);
    } else if (fs::is_directory(lower)) {
      fs::create_directories(target);
      const fs::path upper = add_overlay(options, lower, name, name, root);
      if (std::string_view(name) == "etc") {
        add_user(options, upper);
        // The lab's names come over it; a root that debootstrap made has none.
        if (!fs::exists(lower / "hosts") && !fs::exists(upper / "hosts")) {
          write_file(upper / "hosts", "");
        }
      }
      if (std::string_view(name) == "var") hide_contents(upper / "tmp", fs::perms{01777});
    }
  }
  const fs::path home = path_in_root(root, options.home);
  if (!fs::exists(home)) {
    make_folder(home, fs::perms{0755});
    give(home, options.user_id);
  }
  add_key(options, home);
  for (std::size_t i = 0; i < options.contents.size(); ++i) {
    const auto& [from, to] = options.contents[i];
    if (!fs::is_directory(from)) {
      throw ConfigError("hosts.contents: {} is not a folder of this machine", from.string());
    }
    give(add_overlay(options, from, to, fmt::format("contents-{}", i), root), options.user_id);
  }
  return root;
}

fs::path path_in_root(const HostRoot& root, const fs::path& path) {
  return root.folder / path.relative_path();
}

}  // namespace lockstep
