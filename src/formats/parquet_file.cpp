#include "formats/parquet_file.h"

#include "base/error.h"
#include "base/module.h"

namespace lockstep {

namespace {

using OpenFunction = ParquetFile* (*)(const char* path);  // formats/parquet/arrow_reader.cpp

const Module& module() {
  static const Module loaded = load_module("liblockstep_parquet.so", "lockstep_open_parquet");
  return loaded;
}

}  // namespace

bool has_parquet() { return module().function != nullptr; }

std::unique_ptr<ParquetFile> open_parquet(const fs::path& path) {
  if (!fs::exists(path)) throw DataError("{}: no such file", path.string());
  if (module().function == nullptr) {
    DataError error("{}: Parquet cannot be read", path.string());
    error.set_cause(module().why);
    error.set_advice(
        "pip install pyarrow where torch is, of the release that is asked for (libarrow.so.2600 is "
        "pyarrow 26's); a program built without it: then configure and build again");
    throw error;
  }
  const auto open = reinterpret_cast<OpenFunction>(module().function);
  return std::unique_ptr<ParquetFile>(open(path.c_str()));
}

}  // namespace lockstep
