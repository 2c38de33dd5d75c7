// Lines in blocks of equal number, read ahead by a thread of its own: the blocks of two sources go
// in step, and whole blocks are handed to other threads without copying lines.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace lockstep {

struct NumberedLines {
  int64_t first = 0;  // number of its first line in the source, from 0
  std::string text;   // the lines one after the other, without their ends (LF or CR LF)
  std::vector<std::size_t> ends;

  int64_t size() const { return static_cast<int64_t>(ends.size()); }
  std::string_view operator[](int64_t i) const {
    auto at = static_cast<std::size_t>(i);
    std::size_t begin = at == 0 ? 0 : ends[at - 1];
    return std::string_view(text).substr(begin, ends[at] - begin);
  }
};

class LineReader {
 public:
  static constexpr int64_t kLines = 8192;  // of every block but the last

  // Writes the next bytes of a text, `most` or fewer, and returns their number; 0 at the end.
  using Source = std::function<std::size_t(char* to, std::size_t most)>;

  // `source` is called on the reading thread only; what it throws is thrown by next().
  explicit LineReader(Source source);
  ~LineReader();  // stops reading
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next block; nothing after the last. A last line without LF counts.
  std::optional<NumberedLines> next();

 private:
  void read();
  bool push(NumberedLines block);  // false: nobody wants it any more

  Source source_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<NumberedLines> waiting_;
  bool finished_ = false, stopped_ = false;
  std::exception_ptr failure_;
  std::thread reader_;
};

}  // namespace lockstep
