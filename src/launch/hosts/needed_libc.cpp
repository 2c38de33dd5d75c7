#include "launch/hosts/needed_libc.h"

#include <link.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/error.h"

namespace lockstep {

namespace {

constexpr std::string_view kPrefix = "GLIBC_2.";

// The loader has turned the addresses of a dynamic section into those of memory, but for objects
// that lie in read-only memory.
const char* at(const dl_phdr_info& info, ElfW(Addr) address) {
  if (address < info.dlpi_addr) address += info.dlpi_addr;
  return reinterpret_cast<const char*>(address);
}

// Returns the greatest minor version of glibc that the object's table of needed versions
// (System V ABI, .gnu.version_r) names; 0: none.
int newest_minor(const dl_phdr_info& info, const ElfW(Dyn) * dynamic) {
  const char* strings = nullptr;
  const char* needed = nullptr;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_STRTAB) strings = at(info, dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_VERNEED) needed = at(info, dynamic->d_un.d_ptr);
  }
  int newest = 0;
  while (strings != nullptr && needed != nullptr) {
    const auto* file = reinterpret_cast<const ElfW(Verneed)*>(needed);
    const char* entry = needed + file->vn_aux;
    for (int i = 0; i < file->vn_cnt; ++i) {
      const auto* version = reinterpret_cast<const ElfW(Vernaux)*>(entry);
      const std::string_view name = strings + version->vna_name;
      int minor = 0;
      if (name.starts_with(kPrefix)) {
        std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), minor);
      }
      newest = std::max(newest, minor);
      entry += version->vna_next;
    }
    if (file->vn_next == 0) break;
    needed += file->vn_next;
  }
  return newest;
}

int visit(dl_phdr_info* info, std::size_t, void* data) {
  const std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const char* own : {"libc.so", "libm.so", "ld-linux", "libpthread.so", "libdl.so", "librt.so",
                          "libresolv.so", "libnss_", "linux-vdso"}) {
    if (name.starts_with(own)) return 0;
  }
  int& newest = *static_cast<int*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    const auto* dynamic = reinterpret_cast<const ElfW(Dyn)*>(info->dlpi_addr + header.p_vaddr);
    newest = std::max(newest, newest_minor(*info, dynamic));
  }
  return 0;
}

}  // namespace

std::string needed_libc() {
  int newest = 0;
  ::dl_iterate_phdr(visit, &newest);
  return newest == 0 ? "" : fmt::format("2.{}", newest);
}

}  // namespace lockstep
