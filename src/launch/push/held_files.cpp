#include "launch/push/held_files.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

// Returns "rest" of "WORD rest"; nothing for other lines.
std::optional<std::string> after(std::string_view word, std::string_view line) {
  if (!line.starts_with(word) || line.size() <= word.size() || line[word.size()] != ' ') {
    return std::nullopt;
  }
  return std::string(line.substr(word.size() + 1));
}

void make_writable(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw MachineError("{} cannot be made: {}", folder.string(), failed.message());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    throw MachineError("{} cannot be written: {}", folder.string(), std::strerror(errno));
  }
}

int64_t free_bytes_of(const fs::path& folder) {
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) return -1;
  return static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
}

// Adds what a process of a job reads, by absolute path: files that it has mapped, and the words of
// its command line, of which one is its configuration.
void add_files_of(const fs::path& process, int pid, const fs::path& folder,
                  std::map<std::string, int>& out) {
  for (const std::string& line : split(read_file(process / "maps"), '\n')) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos) out.emplace(line.substr(path), pid);
  }
  for (const std::string& word : split(read_file(process / "cmdline"), '\0')) {
    if (!word.empty()) out.emplace((folder / word).lexically_normal().string(), pid);
  }
}

// Returns the files that processes at work in the folder read, with the process that does so.
std::map<std::string, int> files_in_use(const fs::path& folder) {
  std::map<std::string, int> out;
  std::error_code failed;
  const fs::path real = fs::canonical(folder, failed);
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", failed)) {
    const std::string name = entry.path().filename().string();
    const int pid = std::atoi(name.c_str());
    std::error_code hidden;  // processes of other users
    if (pid <= 0 || fs::read_symlink(entry.path() / "cwd", hidden) != real) continue;
    if (fs::read_symlink(entry.path() / "exe", hidden).filename() != "lockstep") continue;
    try {
      add_files_of(entry.path(), pid, real, out);
    } catch (const Error&) {  // it has ended
    }
  }
  return out;
}

}  // namespace

HeldFiles look_at_files(const fs::path& folder, const std::vector<Piece>& pieces,
                        const std::vector<std::string>& paths) {
  make_writable(folder);
  HeldFiles out;
  out.free_bytes = free_bytes_of(folder);
  KnownHashes hashes;
  std::error_code failed;
  for (const Piece& piece : pieces) {
    const fs::path file = folder / piece.path;
    if (!fs::is_regular_file(file, failed)) {
      out.missing.push_back(piece.path);
    } else if (static_cast<int64_t>(fs::file_size(file, failed)) != piece.bytes ||
               hashes.sha256(file) != piece.sha256) {
      out.changed.push_back(piece.path);
    }
  }
  for (const std::string& path : paths) {
    if (!fs::exists(folder / path, failed)) out.absent.push_back(path);
  }
  if (out.changed.empty()) return out;
  const std::map<std::string, int> in_use = files_in_use(folder);
  const fs::path real = fs::canonical(folder, failed);
  for (const std::string& path : out.changed) {
    const auto found = in_use.find((real / path).string());
    if (found != in_use.end()) out.used.push_back({path, found->second});
  }
  return out;
}

std::string question_text(const std::vector<Piece>& pieces, const std::vector<std::string>& paths) {
  std::string out;
  for (const Piece& piece : pieces) {
    out += fmt::format("file {} {} {}\n", piece.sha256, piece.bytes, piece.path);
  }
  for (const std::string& path : paths) out += fmt::format("path {}\n", path);
  return out;
}

void read_question(std::string_view text, std::vector<Piece>& pieces,
                   std::vector<std::string>& paths) {
  for (const std::string& line : split(text, '\n')) {
    if (const auto path = after("path", line)) paths.push_back(*path);
    const auto file = after("file", line);
    if (!file) continue;
    const std::size_t hash_end = file->find(' '), size_end = file->find(' ', hash_end + 1);
    if (hash_end == std::string::npos || size_end == std::string::npos) continue;
    Piece piece{.source = "", .path = file->substr(size_end + 1)};
    piece.sha256 = file->substr(0, hash_end);
    std::from_chars(file->data() + hash_end + 1, file->data() + size_end, piece.bytes);
    pieces.push_back(std::move(piece));
  }
}

std::string answer_text(const HeldFiles& held) {
  std::string out;
  if (held.free_bytes >= 0) out += fmt::format("free {}\n", held.free_bytes / 1024);
  for (const std::string& path : held.missing) out += fmt::format("missing {}\n", path);
  for (const std::string& path : held.changed) out += fmt::format("changed {}\n", path);
  for (const std::string& path : held.absent) out += fmt::format("absent {}\n", path);
  for (const HeldFiles::Use& use : held.used) out += fmt::format("used {} {}\n", use.pid, use.path);
  return out;
}

HeldFiles read_answer(std::string_view text) {
  HeldFiles out;
  for (const std::string& line : split(text, '\n')) {
    if (const auto free = after("free", line)) {
      const int64_t kilobytes = std::atoll(free->c_str());
      out.free_bytes = std::clamp<int64_t>(kilobytes, 0, INT64_MAX / 1024) * 1024;
    }
    if (const auto path = after("missing", line)) out.missing.push_back(*path);
    if (const auto path = after("changed", line)) out.changed.push_back(*path);
    if (const auto path = after("absent", line)) out.absent.push_back(*path);
    if (const auto use = after("used", line)) {
      const std::size_t blank = use->find(' ');
      if (blank == std::string::npos) continue;
      out.used.push_back({use->substr(blank + 1), std::atoi(use->c_str())});
    }
  }
  return out;
}

}  // namespace lockstep
