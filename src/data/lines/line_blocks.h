// Lines of a descriptor in blocks of whatever is there to read, so that a pipe is answered as it
// speaks and a file is read in large pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

struct LineBlock {
  std::string text;          // whole lines; only the last one of all may lack its end
  int64_t first_number = 1;  // of its first line
};

class LineBlockReader {
 public:
  explicit LineBlockReader(int descriptor) : descriptor_(descriptor) {}  // not owned

  // Nothing at the end. Throws DataError when reading fails.
  std::optional<LineBlock> next();

 private:
  int descriptor_;
  std::string rest_;  // the start of a line
  int64_t number_ = 1;
  bool ended_ = false;
};

// The next line of `text` without its end (LF or CR LF), taken off it; REQUIRES text not empty.
std::string_view take_line(std::string_view& text);

}  // namespace lockstep
