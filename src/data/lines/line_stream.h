// The lines of a text file one after the other, read ahead by a thread of its own, so that two
// files can be read in step and unpacking overlaps with the work on the lines.
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
  // `path`: plain or .gz. Errors of reading are thrown by next().
  explicit LineStream(const fs::path& path);
  ~LineStream();  // stops reading
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

  // The next line without its end, valid until the next call; false after the last one. A byte
  // order mark before the first line is skipped. Throws DataError as for_each_line() does, and for
  // a line that is not UTF-8, with file, line, column (in characters from 1) and byte.
  bool next(std::string_view& line);
  int64_t number() const { return number_; }  // of the last line, from 1; 0 before the first

 private:
  using Block = std::vector<std::string>;
  void read();
  bool push(Block block);  // false: nobody wants it any more
  void check_utf8(std::string_view line) const;

  fs::path path_;
  Block current_;
  std::size_t at_ = 0;
  int64_t number_ = 0;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Block> waiting_;
  bool finished_ = false, stopped_ = false;
  std::exception_ptr failure_;
  std::thread reader_;
};

}  // namespace lockstep
