// Reads lines from a descriptor in blocks of whatever is available: so a pipe is answered as soon
// as it delivers lines, and a file is read in large pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

struct LineBlock {
  std::string text;          // whole lines; only the very last may lack its line end
  int64_t first_number = 1;  // line number of its first line
};

class LineBlockReader {
 public:
  explicit LineBlockReader(int descriptor) : descriptor_(descriptor) {}  // not owned

  // Returns nothing at the end. Throws DataError when reading fails.
  std::optional<LineBlock> next();

 private:
  int descriptor_;
  std::string rest_;  // the start of a line that is not complete
  int64_t number_ = 1;
  bool ended_ = false;
};

// Removes the next line from `text` and returns it without its end (LF or CR LF). REQUIRES: `text`
// is not empty.
std::string_view take_line(std::string_view& text);

}  // namespace lockstep
