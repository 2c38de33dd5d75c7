// Columns of a Parquet file, batch by batch. Arrow reads it, in a module of its own
// (liblockstep_parquet.so beside the program) that is loaded when a first file is opened, so that
// the program neither needs Arrow nor starts slower for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

enum class ParquetKind {
  kText,
  kInteger,
  kFloat,
  kBool,
  kBinary,
  kImage,  // Hugging Face's Image: a struct of bytes and path
  kOther,  // cannot be read
};

struct ParquetColumn {
  std::string name;
  ParquetKind kind = ParquetKind::kOther;
  std::string type;  // as Arrow names it
};

// Cells of one column of a batch. A number is its decimal text, a bool "true" or "false", an image
// its bytes.
struct ParquetCells {
  std::vector<std::optional<std::string>> values;
  std::vector<std::string> paths;  // of images; may be empty texts
};

class ParquetFile {
 public:
  virtual ~ParquetFile() = default;

  virtual int64_t rows() const = 0;
  virtual const std::vector<ParquetColumn>& columns() const = 0;
  // Of the schema ("huggingface": JSON that tells of classes); nothing when absent.
  virtual std::optional<std::string> metadata(const std::string& key) const = 0;
  // The next rows of those columns, in the order asked for; false at the end. Call it with the same
  // columns always. Throws DataError when the file is damaged or a column's kind is kOther.
  virtual bool next(std::span<const int> columns, std::vector<ParquetCells>& cells) = 0;
};

// Throws DataError for what is no Parquet file, and where this program was built without Arrow.
std::unique_ptr<ParquetFile> open_parquet(const fs::path& path);

// True when the module can be loaded.
bool has_parquet();

}  // namespace lockstep
