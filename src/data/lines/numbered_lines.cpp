#include "data/lines/numbered_lines.h"

#include <cstring>
#include <utility>

namespace lockstep {

namespace {

constexpr std::size_t kReadBytes = 1 << 18;
constexpr std::size_t kLineBlocksAhead = 8;

// Cuts bytes into lines, and lines into blocks. end_line() returns true when the block is full.
class Cutter {
 public:
  // Appends to the current line.
  void add(std::string_view part) { block_.text.append(part); }
  bool end_line() {
    std::size_t begin = block_.ends.empty() ? 0 : block_.ends.back();
    if (block_.text.size() > begin && block_.text.back() == '\r') block_.text.pop_back();
    block_.ends.push_back(block_.text.size());
    return block_.size() == LineReader::kLines;
  }
  bool open_line() const {
    return block_.text.size() > (block_.ends.empty() ? 0 : block_.ends.back());
  }
  bool empty() const { return block_.ends.empty(); }
  NumberedLines take() {
    NumberedLines next;
    next.first = block_.first + block_.size();
    next.text.reserve(block_.text.size() + block_.text.size() / 8);
    next.ends.reserve(static_cast<std::size_t>(LineReader::kLines));
    return std::exchange(block_, std::move(next));
  }

 private:
  NumberedLines block_;
};

}  // namespace

LineReader::LineReader(Source source) : source_(std::move(source)), reader_([this] { read(); }) {}

LineReader::~LineReader() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

bool LineReader::push(NumberedLines block) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || waiting_.size() < kLineBlocksAhead; });
  if (stopped_) return false;
  waiting_.push_back(std::move(block));
  changed_.notify_all();
  return true;
}

void LineReader::read() {
  std::exception_ptr failure;
  try {
    Cutter cutter;
    std::vector<char> buffer(kReadBytes);
    while (std::size_t n = source_(buffer.data(), buffer.size())) {
      std::string_view rest(buffer.data(), n);
      for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos;) {
        cutter.add(rest.substr(0, end));
        rest.remove_prefix(end + 1);
        if (cutter.end_line() && !push(cutter.take())) return;
      }
      cutter.add(rest);
    }
    if (cutter.open_line()) cutter.end_line();
    if (!cutter.empty() && !push(cutter.take())) return;
  } catch (...) {
    failure = std::current_exception();
  }
  std::lock_guard lock(mutex_);
  failure_ = failure;
  finished_ = true;
  changed_.notify_all();
}

std::optional<NumberedLines> LineReader::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_ || !waiting_.empty(); });
  if (waiting_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return std::nullopt;
  }
  NumberedLines block = std::move(waiting_.front());
  waiting_.pop_front();
  changed_.notify_all();
  return block;
}

}  // namespace lockstep
