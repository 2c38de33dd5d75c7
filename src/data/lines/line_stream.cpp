#include "data/lines/line_stream.h"

#include <memory>

#include "base/byte_reader.h"
#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// The reading thread opens the file, so that next() throws what that throws.
LineReader::Source bytes_of(const fs::path& path) {
  return [path, file = std::shared_ptr<ByteReader>()](char* to, std::size_t most) mutable {
    if (!file) file = std::make_shared<ByteReader>(path);
    return file->read(to, most);
  };
}

}  // namespace

LineStream::LineStream(const fs::path& path) : path_(path), blocks_(bytes_of(path)) {}

bool LineStream::next(std::string_view& line) {
  if (!block_ || at_ == block_->size()) {
    block_ = blocks_.next();
    at_ = 0;
    if (!block_) return false;
  }
  line = (*block_)[at_++];
  if (++number_ == 1 && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  check_utf8(line);
  return true;
}

void LineStream::check_utf8(std::string_view line) const {
  std::optional<std::size_t> bad = invalid_utf8_at(line);
  if (!bad) return;
  DataError error("{}:{}:{}: byte 0x{:02x} is not valid UTF-8", path_.string(), number_,
                  to_code_points(line.substr(0, *bad)).size() + 1,
                  static_cast<unsigned char>(line[*bad]));
  const bool utf16 = number_ == 1 && (line.starts_with("\xff\xfe") || line.starts_with("\xfe\xff"));
  error.set_advice(utf16 ? "iconv -f utf-16 -t utf-8 (the file begins as UTF-16) and prepare again"
                         : "iconv -f latin1 -t utf-8 (if the text is Latin-1) and prepare again");
  throw error;
}

}  // namespace lockstep
