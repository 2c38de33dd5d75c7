#include "data/lines/numbered_lines.h"

#include <memory>
#include <utility>

namespace lockstep {

namespace {

constexpr std::size_t kReadBytes = 1 << 18;
constexpr std::size_t kBlocksAhead = 8;

// Cuts bytes into lines, and lines into blocks.
class Cutter {
 public:
  explicit Cutter(LineReader::Source source) : source_(std::move(source)), buffer_(kReadBytes) {}

  std::optional<NumberedLines> next() {
    while (!ended_) {
      for (std::size_t end; (end = rest_.find('\n')) != std::string_view::npos;) {
        block_.text.append(rest_.substr(0, end));
        rest_.remove_prefix(end + 1);
        end_line();
        if (block_.size() == LineReader::kLines) return take();
      }
      block_.text.append(rest_);
      const std::size_t n = source_(buffer_.data(), buffer_.size());
      rest_ = std::string_view(buffer_.data(), n);
      ended_ = n == 0;
    }
    if (block_.text.size() > line_begin()) end_line();
    if (block_.ends.empty()) return std::nullopt;
    return take();
  }

 private:
  std::size_t line_begin() const { return block_.ends.empty() ? 0 : block_.ends.back(); }

  void end_line() {
    if (block_.text.size() > line_begin() && block_.text.back() == '\r') block_.text.pop_back();
    block_.ends.push_back(block_.text.size());
  }

  NumberedLines take() {
    NumberedLines next;
    next.first = block_.first + block_.size();
    next.text.reserve(block_.text.size() + block_.text.size() / 8);
    next.ends.reserve(static_cast<std::size_t>(LineReader::kLines));
    return std::exchange(block_, std::move(next));
  }

  LineReader::Source source_;
  std::vector<char> buffer_;
  std::string_view rest_;  // of the buffer, not yet cut
  bool ended_ = false;
  NumberedLines block_;
};

}  // namespace

LineReader::LineReader(Source source)
    : blocks_([cutter = std::make_shared<Cutter>(std::move(source))] { return cutter->next(); },
              kBlocksAhead) {}

}  // namespace lockstep
