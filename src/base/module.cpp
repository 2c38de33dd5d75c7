#include "base/module.h"

#include <dlfcn.h>

#include "base/file.h"

namespace lockstep {

Module load_module(const std::string& file, const char* function, bool lazily) {
  Module out;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {program, program.parent_path() / "lib", program.parent_path()}) {
    if (!fs::exists(folder / file, ignored)) continue;
    void* handle = ::dlopen((folder / file).c_str(), lazily ? RTLD_LAZY : RTLD_NOW);
    if (handle != nullptr) out.function = ::dlsym(handle, function);
    if (out.function != nullptr) return {out.function, ""};
    out.why = ::dlerror();
  }
  if (out.why.empty()) out.why = "this program was built without it";
  return out;
}

}  // namespace lockstep
