// Reads two texts of an archive whose lines translate each other, in parallel: each is unpacked by
// its own thread.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "data/lines/numbered_lines.h"

namespace lockstep {

class PairedLines {
 public:
  struct Block {
    NumberedLines source, target;  // the same number of lines with the same numbers
  };

  // With `check_rest` the archive is read to its end, so that damage after the texts is found too.
  PairedLines(const fs::path& archive, const std::string& source_entry,
              const std::string& target_entry, bool check_rest);

  // Returns the next lines, or nothing after the last ones. Throws DataError like ArchiveEntries,
  // and when one text has more lines than the other (with both counts).
  std::optional<Block> next();

 private:
  [[noreturn]] void fail(int64_t source, int64_t target) const;

  fs::path archive_;
  std::string source_entry_, target_entry_;
  LineReader sources_, targets_;
  int64_t read_ = 0;  // lines read from each text
};

}  // namespace lockstep
