// The file system of a virtual host that shares none with this machine. It begins with the system
// folders of a root (this machine's own, or one made by debootstrap) and an empty home; what the
// host changes is kept in the lab's folder, so that a power loss leaves its disk as it was.
// Overlays (Documentation/filesystems/overlayfs.rst of Linux) keep the root itself untouched.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

struct HostRootOptions {
  std::filesystem::path folder;        // of this host in the lab's folder
  std::filesystem::path system = "/";  // has usr and etc
  // Folders of this machine, and the paths at which the host begins with their contents.
  std::vector<std::pair<std::filesystem::path, std::filesystem::path>> contents;
  std::string user = "root";
  int user_id = 0;
  std::filesystem::path home = "/root";
  std::string authorized_key;  // the line of its ~/.ssh/authorized_keys at first; empty: no file
};

// A folder of the host that lies over a folder of this machine.
struct HostOverlay {
  std::filesystem::path target;  // below HostRoot::folder
  std::string options;           // of mount: lowerdir=...,upperdir=...,workdir=...
};

struct HostRoot {
  std::filesystem::path folder;  // becomes the host's /
  std::vector<HostOverlay> overlays;
};

// Makes the folders and the user; a second call finds what the host has left there. Throws
// ConfigError for a system or contents that are not there.
HostRoot make_host_root(const HostRootOptions& options);

// Where a path of the host lies on this machine, while no overlay covers it: its home, /tmp, /srv.
std::filesystem::path path_in_root(const HostRoot& root, const std::filesystem::path& path);

}  // namespace lockstep
