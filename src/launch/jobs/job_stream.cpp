#include "launch/jobs/job_stream.h"

#include <cstdio>

#include "base/error.h"

namespace lockstep {

void JobStreamReader::read(std::string_view bytes) {
  rest_ += bytes;
  if (!marked_) {
    const std::string mark = std::string(kJobStreamMark) + "\n";
    const std::size_t at = rest_.find(mark);
    if (at == std::string::npos) return;
    rest_.erase(0, at + mark.size());
    marked_ = true;
  }
  while (read_frame()) {
  }
}

// Returns whether there was a whole one.
bool JobStreamReader::read_frame() {
  constexpr std::size_t kLongestHead = 64;
  const std::size_t line = rest_.find('\n');
  if (line == std::string::npos && rest_.size() < kLongestHead) return false;
  if (rest_.empty()) return false;
  const std::string head = rest_.substr(0, line == std::string::npos ? kLongestHead : line);
  std::size_t used = line + 1;
  long long end = 0, size = 0;
  int code = 0;
  char kind = 0;
  if (head == "l") {
    lost_ = true;
  } else if (head == "g") {
    whole_ = true;
  } else if (std::sscanf(head.c_str(), "x %d", &code) == 1) {
    exit_code_ = code;
  } else if (std::sscanf(head.c_str(), "%c %lld %lld", &kind, &end, &size) == 3 &&
             (kind == 'o' || kind == 'e') && size >= 0) {
    if (rest_.size() < used + static_cast<std::size_t>(size)) return false;
    take_(kind == 'e', std::string_view(rest_).substr(used, static_cast<std::size_t>(size)));
    (kind == 'e' ? err_ : out_) = end;
    used += static_cast<std::size_t>(size);
  } else {
    throw MachineError("a host sends \"{}\" in place of a job's output", head);
  }
  rest_.erase(0, used);
  return true;
}

}  // namespace lockstep
