#include "train/listeners/times_file.h"

namespace lockstep {

// Flushes now and then: readers of a run under way see all but the newest seconds.
void TimesFile::on_times(const StepTimes& times) {
  constexpr std::chrono::seconds kLate{2};
  writer_.add(times.step, times.begin, times.ranks);
  const Clock::time_point now = Clock::now();
  if (now - flushed_ < kLate) return;
  writer_.flush();
  flushed_ = now;
}

void TimesFile::on_evaluation(const EvaluationRecord&) { writer_.flush(); }

void TimesFile::on_end(const std::string&) { writer_.flush(); }

}  // namespace lockstep
