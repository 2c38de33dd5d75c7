#include "data/lines/line_blocks.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace lockstep {

std::optional<LineBlock> LineBlockReader::next() {
  constexpr std::size_t kPiece = 1 << 18;
  while (!ended_) {
    std::size_t before = rest_.size();
    rest_.resize(before + kPiece);
    ssize_t n = ::read(descriptor_, rest_.data() + before, kPiece);
    int reason = errno;
    rest_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    if (n < 0 && reason == EINTR) continue;
    if (n < 0) throw DataError("standard input cannot be read: {}", std::strerror(reason));
    ended_ = n == 0;
    std::size_t end = rest_.find_last_of('\n');
    if (end == std::string::npos && !ended_) continue;
    LineBlock block{.text = std::exchange(rest_, {}), .first_number = number_};
    if (!ended_) {
      rest_ = block.text.substr(end + 1);
      block.text.resize(end + 1);
    }
    if (block.text.empty()) break;
    number_ += std::count(block.text.begin(), block.text.end(), '\n');
    return block;
  }
  return std::nullopt;
}

std::string_view take_line(std::string_view& text) {
  std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

}  // namespace lockstep
