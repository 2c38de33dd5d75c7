// Two texts of one archive, whose lines translate each other, in step and unpacked by a thread
// each.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "data/lines/numbered_lines.h"

namespace lockstep {

class PairedLines {
 public:
  struct Block {
    NumberedLines source, target;  // as many lines, the same numbers
  };

  // `check_rest`: the archive is read to its end, so that damage behind the texts is found too.
  PairedLines(const fs::path& archive, const std::string& source_entry,
              const std::string& target_entry, bool check_rest);

  // The next lines; nothing after the last. Throws DataError as ArchiveReader does, and when one
  // text has more lines than the other (with both counts).
  std::optional<Block> next();

 private:
  [[noreturn]] void fail(int64_t source, int64_t target) const;

  fs::path archive_;
  std::string source_entry_, target_entry_;
  LineReader sources_, targets_;
  int64_t read_ = 0;  // lines of each
};

}  // namespace lockstep
