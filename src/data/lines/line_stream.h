// Reads the lines of a text file one after the other, ahead of the caller on a thread of its own:
// so two files can be read in parallel, and decompression overlaps with the work on the lines.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "data/lines/numbered_lines.h"

namespace lockstep {

class LineStream {
 public:
  // `path` may be plain or .gz. Read errors are thrown by next().
  explicit LineStream(const fs::path& path);

  // Reads the next line without its end; it is valid until the next call. Returns false after the
  // last line. A byte order mark before the first line is skipped. Throws DataError like
  // for_each_line(), and for a line that is not UTF-8, with file, line, column (in characters from
  // 1) and byte.
  bool next(std::string_view& line);
  int64_t number() const { return number_; }  // of the last line, from 1; 0 before the first

 private:
  void check_utf8(std::string_view line) const;

  fs::path path_;
  LineReader blocks_;
  std::optional<NumberedLines> block_;
  int64_t at_ = 0;  // in the block
  int64_t number_ = 0;
};

}  // namespace lockstep
