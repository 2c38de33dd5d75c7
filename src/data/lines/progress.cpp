#include "data/lines/progress.h"

#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace lockstep {

Progress::Progress(std::string stage, std::string unit, int64_t total)
    : stage_(std::move(stage)),
      unit_(std::move(unit)),
      total_(total),
      started_(Clock::now()),
      interval_(::isatty(STDERR_FILENO) != 0 ? 200 : 10'000) {
  next_ = started_ + interval_;
}

Progress::~Progress() {
  if (shown_) end_progress();
}

std::string Progress::amount(int64_t value) const {
  return unit_ == "bytes" ? short_bytes(static_cast<double>(value)) : with_commas(value);
}

void Progress::show(int64_t done) {
  if (calls_++ % 256 == 0) update(done);
}

void Progress::update(int64_t done) {
  if (first_ < 0) first_ = done;
  Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + interval_;
  double seconds = std::chrono::duration<double>(now - started_).count();
  double rate = static_cast<double>(done - first_) / seconds;
  std::string line = fmt::format("{}: {}", stage_, amount(done));
  if (total_ > 0) line += fmt::format("/{}", amount(total_));
  line += unit_ == "bytes" ? fmt::format("  {}/s", short_bytes(rate))
                           : fmt::format(" {}  {} a second", unit_, short_number(rate));
  if (total_ > 0 && rate > 0) {
    line += fmt::format("  eta {}", short_duration(static_cast<double>(total_ - done) / rate));
  }
  show_progress(line);
  shown_ = true;
}

}  // namespace lockstep
