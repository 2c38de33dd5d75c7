// Reads the lines of a text file one after the other, ahead of the caller on a thread of its own:
// so two files can be read in parallel, and decompression overlaps with the work on the lines.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file.h"

namespace lockstep {

class LineStream {
 public:
  // `path` may be plain or .gz. Read errors are thrown by next().
  explicit LineStream(const fs::path& path);
  ~LineStream();  // stops reading
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

  // Reads the next line without its end; it is valid until the next call. Returns false after the
  // last line. A byte order mark before the first line is skipped. Throws DataError like
  // for_each_line(), and for a line that is not UTF-8, with file, line, column (in characters from
  // 1) and byte.
  bool next(std::string_view& line);
  int64_t number() const { return number_; }  // of the last line, from 1; 0 before the first

 private:
  using Block = std::vector<std::string>;
  void read();
  bool push(Block block);  // false: the stream is being destroyed
  void check_utf8(std::string_view line) const;

  fs::path path_;
  Block current_;
  std::size_t at_ = 0;
  int64_t number_ = 0;

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Block> waiting_;
  bool finished_ = false, stopped_ = false;
  std::exception_ptr failure_;
  std::thread reader_;
};

}  // namespace lockstep
