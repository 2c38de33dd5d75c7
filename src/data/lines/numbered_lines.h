// Reads lines in blocks of equal numbers of lines, ahead of the caller on a thread of its own. So
// the blocks of two sources correspond, and whole blocks pass to other threads without copying
// lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/prefetcher.h"

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

  // `source` is called only on the reading thread; next() throws what it throws, after the whole
  // blocks before.
  explicit LineReader(Source source);

  // Returns the next block, or nothing after the last. A last line without LF counts.
  std::optional<NumberedLines> next() { return blocks_.next(); }

 private:
  Prefetcher<std::optional<NumberedLines>> blocks_;
};

}  // namespace lockstep
