// Reads columns of a Parquet file batch by batch, with Arrow. Arrow is linked by a separate module
// (liblockstep_parquet.so beside the program) that is loaded when the first file is opened. So the
// program neither needs Arrow nor starts more slowly because of it.
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
  kImage,  // the Image feature of Hugging Face: a struct of bytes and path
  kOther,  // cannot be read
};

struct ParquetColumn {
  std::string name;  // "translation.de": a text within a struct
  ParquetKind kind = ParquetKind::kOther;
  std::string type;  // Arrow's name of the type
};

// The cells of one column of a batch. A number is given as decimal text, a bool as "true" or
// "false", an image as its bytes.
struct ParquetCells {
  std::vector<std::optional<std::string>> values;
  std::vector<std::string> paths;  // of images; may be empty strings
};

class ParquetFile {
 public:
  virtual ~ParquetFile() = default;

  virtual int64_t rows() const = 0;
  virtual const std::vector<ParquetColumn>& columns() const = 0;
  // Returns a value of the schema's metadata ("huggingface" is JSON that lists the classes), or
  // nothing if absent.
  virtual std::optional<std::string> metadata(const std::string& key) const = 0;
  // Reads the next rows of the given columns, in the given order. Returns false at the end. Every
  // call must pass the same columns. Throws DataError when the file is damaged or a column's kind
  // is kOther.
  virtual bool next(std::span<const int> columns, std::vector<ParquetCells>& cells) = 0;
};

// Throws DataError when the file is not Parquet and when the module cannot be loaded.
std::unique_ptr<ParquetFile> open_parquet(const fs::path& path);

// Returns whether the module can be loaded.
bool has_parquet();

}  // namespace lockstep
