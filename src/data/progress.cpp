#include "data/progress.h"

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

void Progress::show(int64_t done) {
  if (calls_++ % 256 != 0) return;
  Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + interval_;
  double seconds = std::chrono::duration<double>(now - started_).count();
  double rate = static_cast<double>(done) / seconds;
  std::string line = fmt::format("{}: {}", stage_, with_commas(done));
  if (total_ > 0) line += fmt::format("/{}", with_commas(total_));
  line += fmt::format(" {}  {} a second", unit_, short_number(rate));
  if (total_ > 0 && rate > 0) {
    line += fmt::format("  eta {}", short_duration(static_cast<double>(total_ - done) / rate));
  }
  show_progress(line);
  shown_ = true;
}

}  // namespace lockstep
