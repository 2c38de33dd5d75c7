#include "launch/hosts/program_files.h"

#include <link.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/file.h"
#include "base/module.h"
#include "base/text.h"
#include "config/recipe.h"
#include "launch/hosts/needed_libc.h"
#include "launch/hosts/remote.h"

namespace lockstep {

namespace {

// glibc's libraries belong to the kernel and the loader of each machine; drivers do so, too.
bool stays_on_its_machine(const std::string& name) {
  static const std::set<std::string> glibc = {
      "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6",    "libm.so.6",
      "libdl.so.2",           "libpthread.so.0",       "librt.so.1",   "libresolv.so.2",
      "libutil.so.1",         "libanl.so.1",           "libmvec.so.1", "libBrokenLocale.so.1",
      "libnss_files.so.2",    "libnss_dns.so.2",       "libcuda.so.1"};
  return glibc.count(name) > 0 || name.rfind("libnvidia-", 0) == 0 ||
         name.rfind("libnss_", 0) == 0 || name.rfind("linux-vdso", 0) == 0;
}

std::vector<fs::path> loaded_libraries() {
  std::vector<fs::path> out;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        std::string name = info->dlpi_name ? info->dlpi_name : "";
        if (name.starts_with('/')) static_cast<std::vector<fs::path>*>(data)->emplace_back(name);
        return 0;
      },
      &out);
  return out;
}

bool is_system(const fs::path& library) {
  std::string real = fs::canonical(library).string();
  return real.starts_with("/usr/lib/") || real.starts_with("/lib/");
}

// Returns the Debian package of a library; empty when dpkg knows none.
std::string package_of(const fs::path& library) {
  std::string command =
      "dpkg-query -S " + shell_quote(fs::canonical(library).string()) + " 2>/dev/null";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "re"), ::pclose);
  std::array<char, 4096> text{};
  if (!pipe || !std::fgets(text.data(), text.size(), pipe.get())) return "";
  std::string line = text.data();
  return line.substr(0, line.find(':'));
}

// The CUDA wheels load some of their libraries by name when these are needed.
void add_siblings(const fs::path& library, std::set<fs::path>& libraries) {
  if (library.string().find("/nvidia/") == std::string::npos) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(library.parent_path())) {
    if (entry.path().filename().string().find(".so") != std::string::npos) {
      libraries.insert(entry.path());
    }
  }
}

Piece make_piece(const fs::path& source, std::string path, KnownHashes& hashes) {
  return {.source = source.string(),
          .path = std::move(path),
          .sha256 = hashes.sha256(source),
          .bytes = static_cast<int64_t>(fs::file_size(source))};
}

void check_name(const std::string& name) {
  if (name.find('\n') == std::string::npos && name.find('\\') == std::string::npos) return;
  throw ConfigError("{}: names of files to copy may hold neither line breaks nor backslashes",
                    name);
}

// A link to a folder above it would lead in circles.
bool leads_upwards(const fs::directory_entry& entry) {
  if (!entry.is_symlink() || !entry.is_directory()) return false;
  const fs::path to = fs::canonical(entry.path());
  const fs::path in = fs::canonical(entry.path().parent_path());
  const fs::path way = in.lexically_relative(to);
  return !way.empty() && *way.begin() != "..";
}

}  // namespace

int64_t ProgramFiles::bytes() const {
  return std::accumulate(pieces.begin(), pieces.end(), int64_t{0},
                         [](int64_t sum, const Piece& piece) { return sum + piece.bytes; });
}

ProgramFiles program_files(bool without_system) {
  // What a rank loads when it computes, and when it looks for a GPU, is loaded here, so that it and
  // its libraries count as the program's. Without CUDA in torch the latter cannot be loaded, and is
  // left out.
  const Module computing = load_module("liblockstep_computing.so", "lockstep_computing", true);
  if (computing.function == nullptr) {
    throw MachineError("cannot load liblockstep_computing.so: {}", computing.why);
  }
  load_module("liblockstep_cuda.so", "lockstep_cuda_functions");
  std::set<fs::path> libraries;
  for (const fs::path& library : loaded_libraries()) {
    libraries.insert(library);
    add_siblings(library, libraries);
  }
  ProgramFiles out;
  KnownHashes hashes;
  std::set<std::string> packages, names;
  out.pieces.push_back(make_piece(fs::read_symlink("/proc/self/exe"), "bin/lockstep", hashes));
  for (const fs::path& library : libraries) {
    std::string name = library.filename().string();
    if (stays_on_its_machine(name) || !names.insert(name).second) continue;
    std::string package = without_system && is_system(library) ? package_of(library) : "";
    if (package.empty()) {
      out.pieces.push_back(make_piece(library, "lib/" + name, hashes));
    } else {
      packages.insert(package);
    }
  }
  if (const std::optional<fs::path> recipes = recipe_folder()) {
    for (Piece& piece : files_below(recipes->string(), hashes)) {
      piece.path = "configs/" + piece.path;
      out.pieces.push_back(std::move(piece));
    }
  }
  std::sort(out.pieces.begin(), out.pieces.end(),
            [](const Piece& a, const Piece& b) { return a.path < b.path; });
  out.packages.assign(packages.begin(), packages.end());
  out.libc = needed_libc();
  std::string text = checksums(out.pieces);
  out.hash = sha256_hex(std::as_bytes(std::span(text))).substr(0, 16);
  return out;
}

std::string checksums(const std::vector<Piece>& pieces) {
  std::string out;
  for (const Piece& piece : pieces) out += fmt::format("{}  {}\n", piece.sha256, piece.path);
  return out;
}

std::vector<Piece> files_below(const std::string& path, KnownHashes& hashes) {
  if (!fs::exists(path)) throw ConfigError("--copy {}: no such file or folder", path);
  std::vector<Piece> out;
  if (!fs::is_directory(path)) {
    out.push_back(make_piece(path, fs::path(path).filename().string(), hashes));
  } else {
    const auto followed = fs::directory_options::follow_directory_symlink;
    for (fs::recursive_directory_iterator at(path, followed), end; at != end; ++at) {
      if (leads_upwards(*at)) at.disable_recursion_pending();
      if (!at->is_regular_file()) continue;
      out.push_back(make_piece(at->path(), at->path().lexically_relative(path).string(), hashes));
    }
  }
  for (const Piece& piece : out) check_name(piece.path);
  std::sort(out.begin(), out.end(), [](const Piece& a, const Piece& b) { return a.path < b.path; });
  return out;
}

}  // namespace lockstep
