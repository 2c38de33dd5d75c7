#include "dist/account/span_recorder.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace lockstep {

void SpanRecorder::plan(int64_t first, int64_t last) {
  state_ = State::kPlanned;
  first_ = first;
  last_ = last;
}

void SpanRecorder::begin_step(int64_t step) {
  if (state_ == State::kOn && step > last_) stop();
  if (state_ != State::kPlanned || step < first_) return;
  first_ = step;
  std::scoped_lock lock(mutex_);
  since_1970_ = seconds_of(std::chrono::system_clock::now().time_since_epoch()) -
                seconds_of(Clock::now().time_since_epoch());
  content_ = {};
  index_.clear();
  state_ = State::kOn;
  on_.store(true, std::memory_order_relaxed);
}

void SpanRecorder::stop() {
  on_.store(false, std::memory_order_relaxed);
  state_ = State::kOver;
}

RecordedSpans SpanRecorder::take(int64_t step) {
  stop();
  state_ = State::kIdle;
  std::scoped_lock lock(mutex_);
  RecordedSpans out = std::exchange(content_, {});
  out.first_step = first_;
  out.last_step = std::min(last_, step);
  std::stable_sort(out.spans.begin(), out.spans.end(),
                   [](const Span& a, const Span& b) { return a.begin < b.begin; });
  return out;
}

void SpanRecorder::add(Span span, std::string_view name, Clock::time_point begin,
                       Clock::time_point end) {
  if (!is_on()) return;
  std::scoped_lock lock(mutex_);
  if (content_.spans.size() >= kMostSpans) {
    ++content_.dropped;
    return;
  }
  auto found = index_.find(name);
  if (found == index_.end()) {
    const auto next = static_cast<int32_t>(content_.names.size());
    found = index_.emplace(std::string(name), next).first;
    content_.names.emplace_back(name);
  }
  span.name = found->second;
  span.begin = since_1970_ + seconds_of(begin.time_since_epoch());
  span.length = seconds_of(end - begin);
  content_.spans.push_back(span);
}

}  // namespace lockstep
