#include "data/lines/line_stream.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::size_t kLinesInBlock = 1024;
constexpr std::size_t kBlocksAhead = 8;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Stopped {};  // thrown to leave for_each_line() early; stays in this file

}  // namespace

LineStream::LineStream(const fs::path& path) : path_(path), reader_([this] { read(); }) {}

LineStream::~LineStream() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

bool LineStream::push(Block block) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || waiting_.size() < kBlocksAhead; });
  if (stopped_) return false;
  waiting_.push_back(std::move(block));
  changed_.notify_all();
  return true;
}

void LineStream::read() {
  std::exception_ptr failure;
  Block block;
  try {
    for_each_line(path_, [&](std::string_view line, int64_t number) {
      if (number == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(3);
      block.emplace_back(line);
      if (block.size() < kLinesInBlock) return;
      if (!push(std::exchange(block, {}))) throw Stopped();
    });
  } catch (const Stopped&) {
    return;
  } catch (...) {
    failure = std::current_exception();
  }
  push(std::move(block));
  std::lock_guard lock(mutex_);
  failure_ = failure;
  finished_ = true;
  changed_.notify_all();
}

bool LineStream::next(std::string_view& line) {
  while (at_ == current_.size()) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_ || !waiting_.empty(); });
    if (waiting_.empty()) {
      if (failure_) std::rethrow_exception(failure_);
      return false;
    }
    current_ = std::move(waiting_.front());
    waiting_.pop_front();
    at_ = 0;
    changed_.notify_all();
  }
  line = current_[at_++];
  ++number_;
  check_utf8(line);
  return true;
}

void LineStream::check_utf8(std::string_view line) const {
  std::optional<std::size_t> bad = invalid_utf8_at(line);
  if (!bad) return;
  DataError error("{}:{}:{}: byte 0x{:02x} is not valid UTF-8", path_.string(), number_,
                  to_code_points(line.substr(0, *bad)).size() + 1,
                  static_cast<unsigned char>(line[*bad]));
  error.set_advice("iconv -f latin1 -t utf-8 (if the text is Latin-1) and prepare again");
  throw error;
}

}  // namespace lockstep
