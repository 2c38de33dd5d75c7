#include "base/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "base/byte_reader.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/output_file.h"

namespace lockstep {

namespace {

std::string why() { return std::strerror(errno); }

}  // namespace

void for_each_line(const fs::path& path,
                   const std::function<void(std::string_view, int64_t)>& visit) {
  ByteReader bytes(path);
  std::string pending;
  std::vector<char> buffer(1 << 17);
  int64_t number = 0;
  auto emit = [&](std::string_view line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    visit(line, ++number);
  };
  while (std::size_t n = bytes.read(buffer.data(), buffer.size())) {
    std::string_view rest(buffer.data(), n);
    for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos;) {
      if (pending.empty()) {
        emit(rest.substr(0, end));
      } else {
        pending.append(rest.substr(0, end));
        emit(pending);
        pending.clear();
      }
      rest.remove_prefix(end + 1);
    }
    pending.append(rest);
  }
  if (!pending.empty()) emit(pending);
}

std::vector<std::string> read_lines(const fs::path& path) {
  std::vector<std::string> out;
  for_each_line(path, [&](std::string_view line, int64_t) { out.emplace_back(line); });
  return out;
}

bool write_new_file(const fs::path& path, std::string_view content) {
  if (fs::exists(path)) return false;
  std::random_device random;
  fs::path aside = path;
  aside += fmt::format(".{:08x}{:08x}", random(), random());
  write_file(aside, content);
  int failed = ::link(aside.c_str(), path.c_str()) == 0 ? 0 : errno;
  if (failed == EPERM || failed == EOPNOTSUPP || failed == ENOSYS) {  // no links there
    const int here = AT_FDCWD;
    const bool named = ::renameat2(here, aside.c_str(), here, path.c_str(), RENAME_NOREPLACE) == 0;
    failed = named ? 0 : errno;
  }
  ::unlink(aside.c_str());
  if (failed != 0 && failed != EEXIST) {
    throw MachineError("{}: cannot be created: {}", path.string(), std::strerror(failed));
  }
  return failed == 0;
}

void sync_file(const fs::path& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) {
    throw MachineError("{}: cannot be synced to disk: {}", path.string(), why());
  }
}

void sync_folder(const fs::path& folder) { sync_file(folder.empty() ? "." : folder); }

void write_file(const fs::path& path, std::string_view content) {
  OutputFile file(path);
  file.write(content);
  file.finish();
}

TemporaryFolder::TemporaryFolder() {
  std::error_code problem;
  const fs::path place = fs::temp_directory_path(problem);
  if (problem) {
    const char* given = std::getenv("TMPDIR");
    throw MachineError("TMPDIR = {}: {}", given == nullptr ? "/tmp" : given, problem.message());
  }
  std::string pattern = (place / "lockstep-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw MachineError("{}: cannot be created: {}", pattern, why());
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace lockstep
