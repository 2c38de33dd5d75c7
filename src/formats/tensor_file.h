// Reads and writes named tensors in the safetensors format,
// docs/formats.md#tensor-file-safetensors. This layer knows only bytes, shapes and element types;
// nn and train convert to torch tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/large_file.h"

namespace lockstep {

enum class DType { kF64, kI64, kF32, kI32, kF16, kBF16, kI16, kI8, kU8, kBool };

std::string_view dtype_name(DType dtype);  // as the file spells it: "F32"
std::optional<DType> dtype_named(std::string_view name);
std::size_t dtype_bytes(DType dtype);  // of one element

// A tensor in row-major order, little-endian. It does not own `data`, which must outlive it.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // empty for a scalar
  std::span<const std::byte> data;
};

using TensorMetadata = std::map<std::string, std::string>;

// Writes a temporary file beside the target, syncs, renames it and syncs the folder: a reader sees
// the old file or the whole new one. Returns the file's size and digest. The data are ordered by
// descending element size, so that each tensor is aligned to its own, and otherwise as given.
// Throws MachineError when the disk refuses and then leaves no temporary file behind. Throws
// std::invalid_argument for entries that make no valid file (a name that is repeated or
// "__metadata__", data that do not fit the shape): those are bugs of the caller.
WrittenFile write_tensor_file(const fs::path& path, const std::vector<TensorEntry>& entries,
                              const TensorMetadata& metadata = {});

// A memory-mapped tensor file that is fully checked when opened. Its spans live as long as this
// object. Files of other writers may hold unaligned data: read elements with memcpy, not through
// casts.
class TensorFile {
 public:
  // Throws DataError unless the file is a complete, gap-free safetensors file of the types above.
  // The error names the file, the tensor, and the expected and actual bytes.
  explicit TensorFile(const fs::path& path);

  const fs::path& path() const { return path_; }
  const std::vector<TensorEntry>& entries() const { return entries_; }  // in the order of the data
  const TensorMetadata& metadata() const { return metadata_; }

  const TensorEntry* find(std::string_view name) const;  // null when absent
  const TensorEntry& get(std::string_view name) const;   // DataError names the most similar
  std::vector<std::string> names() const;

 private:
  void parse_header(std::string_view text, std::span<const std::byte> data);
  void check_layout(std::size_t data_bytes) const;

  fs::path path_;
  MappedFile file_;
  std::vector<TensorEntry> entries_;
  std::unordered_map<std::string, std::size_t> index_;  // name -> index in entries_
  TensorMetadata metadata_;
};

}  // namespace lockstep
