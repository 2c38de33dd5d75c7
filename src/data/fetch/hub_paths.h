// What the files of the hub client share: commits, URLs, folders.
#pragma once

#include <string>

#include "base/file.h"

namespace lockstep {

bool is_commit(const std::string& revision);  // 40 hexadecimal digits

// Escapes what a URL's path cannot hold, except the characters `kept` (RFC 3986, section 2.3).
std::string in_url(const std::string& text, const std::string& kept);

void make_folders(const fs::path& folder);  // throws MachineError

}  // namespace lockstep
