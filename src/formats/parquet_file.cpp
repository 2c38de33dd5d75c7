#include "formats/parquet_file.h"

#include <dlfcn.h>

#include "base/error.h"

namespace lockstep {

namespace {

constexpr const char* kModule = "liblockstep_parquet.so";
constexpr const char* kOpen = "lockstep_open_parquet";  // formats/parquet/arrow_reader.cpp

using OpenFunction = ParquetFile* (*)(const char* path);

struct Module {
  OpenFunction open = nullptr;
  std::string why;  // it cannot be loaded
};

// Beside the program, in lib beside its folder (lockstep cluster setup), where it was built.
Module load_module() {
  Module out;
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder :
       {program, program.parent_path() / "lib", fs::path(LOCKSTEP_BUILD)}) {
    if (!fs::exists(folder / kModule, ignored)) continue;
    void* handle = ::dlopen((folder / kModule).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      out.why = ::dlerror();
      continue;
    }
    out.open = reinterpret_cast<OpenFunction>(::dlsym(handle, kOpen));
    if (out.open != nullptr) return out;
  }
  if (out.why.empty()) out.why = "this program was built without Arrow";
  return out;
}

const Module& module() {
  static const Module loaded = load_module();
  return loaded;
}

}  // namespace

bool has_parquet() { return module().open != nullptr; }

std::unique_ptr<ParquetFile> open_parquet(const fs::path& path) {
  if (!fs::exists(path)) throw DataError("{}: no such file", path.string());
  if (module().open == nullptr) {
    DataError error("{}: Parquet cannot be read", path.string());
    error.set_cause(module().why);
    error.set_advice(".venv/bin/python -m pip install pyarrow, then configure and build again");
    throw error;
  }
  return std::unique_ptr<ParquetFile>(module().open(path.c_str()));
}

}  // namespace lockstep
