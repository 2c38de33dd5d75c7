// Reads lines in blocks of equal numbers of lines, ahead of the caller on a thread of its own. So
// the blocks of two sources correspond, and whole blocks pass to other threads without copying
// lines.
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
  std::string text;   // the lines, concatenated without their ends (LF or CR LF)
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
  static constexpr int64_t kLines = 8192;  // lines per block; the last block may have fewer

  // Writes up to `most` next bytes of a text and returns their number; 0 at the end.
  using Source = std::function<std::size_t(char* to, std::size_t most)>;

  // `source` is called only on the reading thread; next() rethrows what it throws.
  explicit LineReader(Source source);
  ~LineReader();  // stops reading
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Returns the next block, or nothing after the last. A last line without LF counts.
  std::optional<NumberedLines> next();

 private:
  void read();
  bool push(NumberedLines block);  // false: the reader is being destroyed

  Source source_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<NumberedLines> waiting_;
  bool finished_ = false, stopped_ = false;
  std::exception_ptr failure_;
  std::thread reader_;
};

}  // namespace lockstep
