// Reads and writes texts as token ids with labels in one memory-mapped file;
// docs/formats.md#text-file. The ids are what the network reads, including [CLS] and [SEP].
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/output_file.h"

namespace lockstep {

enum class LabelKind : uint32_t {
  kNone = 0,   // no labels
  kClass = 1,  // the number of a class
  kValue = 2,  // a float that is predicted itself (regression)
};

// The parameters of a text file: ids are in [0, vocab_size), labels in [0, classes).
struct TextFileInfo {
  int32_t vocab_size = 0;
  std::string vocab_sha256;  // 64 hexadecimal digits
  LabelKind label_kind = LabelKind::kNone;
  int32_t classes = 0;  // of kClass, else 0; relabel() may set it later
};

// One text or one pair of texts.
struct TextExample {
  std::span<const int32_t> ids;
  int32_t second_begin = 0;  // index in `ids` where type ids become 1; ids.size(): no pair
  int32_t label = 0;         // of kClass
  float value = 0;           // of kValue
};

// An example as it is stored in the file.
struct TextRecord {
  uint64_t end = 0;           // index after its last id, counted over the whole file
  uint32_t second_begin = 0;  // index within the example
  uint32_t label = 0;         // of kClass: the class; of kValue: the bits of the float
};

// Streams examples to disk: ids go straight to the file, and 16 bytes per example stay in memory
// until the end. The file appears under its name when finish() returns.
class TextFileWriter {
 public:
  TextFileWriter(const fs::path& path, const TextFileInfo& info);

  // Throws std::invalid_argument for an id outside the vocabulary: a bug of the caller.
  void add(const TextExample& example);
  // For classes that are known only after all examples were seen: label l of each example so far
  // becomes numbers[l], which is one of `classes`.
  void relabel(std::span<const int32_t> numbers, int32_t classes);
  void drop_labels();  // of all examples so far; the file then has no labels
  // Throws std::invalid_argument for a label out of range.
  void finish();

  int64_t examples() const { return static_cast<int64_t>(records_.size()); }
  int64_t tokens() const { return static_cast<int64_t>(tokens_); }

 private:
  OutputFile file_;
  TextFileInfo info_;
  uint64_t tokens_ = 0;
  std::vector<TextRecord> records_;
  std::vector<uint16_t> narrow_;  // one example, when ids take 16 bits
};

// A text file that is open for reading. Several threads may read it.
class TextFile {
 public:
  // Checks header, size and every record. Ids are checked when they are read. Throws DataError.
  explicit TextFile(const fs::path& path);

  const TextFileInfo& info() const { return info_; }
  int64_t size() const { return examples_; }
  int64_t tokens() const { return tokens_; }

  // The functions below describe example i, 0 <= i < size(), without reading its ids.
  int32_t length(int64_t i) const;        // number of ids, special ones included; at least 2
  int32_t second_begin(int64_t i) const;  // length(i) if it is not a pair
  int64_t label(int64_t i) const;         // of kClass, else -1
  float value(int64_t i) const;           // of kValue, else NaN

  // Writes length(i) ids to `ids`. Throws DataError for an id outside the vocabulary.
  void read(int64_t i, int64_t* ids) const;

 private:
  void read_header();
  void check_records() const;
  TextRecord record(int64_t i) const;
  uint64_t begin(int64_t i) const;  // index of its first id in the file

  fs::path path_;
  MappedFile file_;
  TextFileInfo info_;
  const std::byte* ids_ = nullptr;
  const std::byte* records_ = nullptr;
  uint32_t id_bytes_ = 0;
  int64_t examples_ = 0, tokens_ = 0;
};

}  // namespace lockstep
