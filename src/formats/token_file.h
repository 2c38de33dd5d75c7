// Reads and writes sentence pairs as token ids in one memory-mapped file;
// docs/formats.md#token-file. The ids contain no start and end symbols: the code that makes batches
// adds them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/output_file.h"

namespace lockstep {

// The parameters of a token file: ids are in [0, vocab_size).
struct TokenFileInfo {
  int32_t vocab_size = 0;
  std::string subword_sha256;  // of the subword model, 64 hexadecimal digits
};

// Streams pairs to disk: ids go straight to the file, and 16 bytes per pair stay in memory until
// the end. The file appears under its name when finish() returns.
class TokenFileWriter {
 public:
  TokenFileWriter(const fs::path& path, const TokenFileInfo& info);

  // Throws std::invalid_argument for an id outside the vocabulary: a bug of the caller.
  void add(std::span<const int32_t> source, std::span<const int32_t> target);
  void finish();

  int64_t pairs() const { return static_cast<int64_t>(offsets_.size() / 2); }
  int64_t source_tokens() const { return source_tokens_; }
  int64_t target_tokens() const { return target_tokens_; }

 private:
  void append(std::span<const int32_t> ids);

  OutputFile file_;
  TokenFileInfo info_;
  std::vector<uint64_t> offsets_{0};
  std::vector<uint16_t> narrow_;  // buffer for one sentence when ids take 16 bits
  int64_t source_tokens_ = 0, target_tokens_ = 0;
};

// A token file that is open for reading. Several threads may read it.
class TokenFile {
 public:
  // Checks header, size and offsets. Ids are checked when they are read. Throws DataError.
  explicit TokenFile(const fs::path& path);

  int64_t pairs() const { return pairs_; }
  int64_t source_tokens() const { return source_tokens_; }
  int64_t target_tokens() const { return target_tokens_; }
  int32_t vocab_size() const { return vocab_size_; }
  const std::string& subword_sha256() const { return subword_sha256_; }

  // Returns the number of tokens of one side of pair `i` (0 <= i < pairs()), without reading the
  // ids.
  int32_t source_length(int64_t i) const { return length(2 * i); }
  int32_t target_length(int64_t i) const { return length(2 * i + 1); }

  // Returns the ids. Throws DataError for an id outside the vocabulary.
  std::vector<int32_t> source(int64_t i) const { return sentence(2 * i); }
  std::vector<int32_t> target(int64_t i) const { return sentence(2 * i + 1); }

 private:
  void read_header();
  void check_offsets() const;
  uint64_t offset(int64_t i) const;
  int32_t length(int64_t i) const { return static_cast<int32_t>(offset(i + 1) - offset(i)); }
  std::vector<int32_t> sentence(int64_t i) const;

  fs::path path_;
  MappedFile file_;
  const std::byte* ids_ = nullptr;
  const std::byte* offsets_ = nullptr;
  uint32_t id_bytes_ = 0;
  int64_t pairs_ = 0, source_tokens_ = 0, target_tokens_ = 0;
  int32_t vocab_size_ = 0;
  std::string subword_sha256_;
};

}  // namespace lockstep
