#include "train/listeners/host_log.h"

#include <chrono>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "dist/liveness/heartbeat.h"

namespace lockstep {

HostLog::HostLog(World& world, Logs logs, double every_seconds)
    : world_(world), logs_(logs), every_seconds_(every_seconds) {
  if (!world_.heartbeat().is_running()) world_.heartbeat().start("");  // there is only one rank
  thread_ = std::thread([this] { run(); });
}

HostLog::~HostLog() {
  {
    std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void HostLog::run() {
  using Clock = std::chrono::steady_clock;
  const auto interval =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(every_seconds_));
  // Looks twice per second, since samples come once per second, so that none is missed.
  constexpr std::chrono::milliseconds kLook{500};
  std::unique_lock lock(mutex_);
  for (Clock::time_point due = Clock::now() + interval; !stopping_;) {
    ended_.wait_for(lock, kLook, [this] { return stopping_; });
    look();
    if (const auto now = Clock::now(); now >= due) {
      close_interval();
      due = now + interval;
    }
  }
}

void HostLog::look() { means_.add(world_.heartbeat().ranks()); }

void HostLog::close_interval() {
  constexpr std::size_t kMost = 20'000;  // bounds what a loop blocked for hours piles up
  const double time = unix_seconds();
  for (HostSummary& summary : means_.take()) {
    if (due_.size() < kMost) due_.push_back({time, step_, std::move(summary)});
  }
}

void HostLog::write(int64_t step) {
  std::vector<Due> lines;
  {
    std::scoped_lock lock(mutex_);
    step_ = step;
    lines.swap(due_);
  }
  for (const Due& line : lines) {
    logs_.metrics.on_host(line.time, line.step, line.summary.line);
    for (const auto& [name, value] : line.summary.scalars) {
      logs_.events.scalar("host/" + line.summary.host + "/" + name, line.step, value, line.time);
    }
  }
}

// Writes nothing, since the line that tells of the start comes first.
void HostLog::on_start(int64_t first_step, int64_t) {
  std::scoped_lock lock(mutex_);
  step_ = first_step - 1;
}

void HostLog::on_step(const StepRecord& record) { write(record.step); }

void HostLog::on_evaluation(const EvaluationRecord& record) { write(record.step); }

void HostLog::on_checkpoint(const CheckpointRecord& record) { write(record.step); }

void HostLog::on_end(const std::string&) {
  {
    std::scoped_lock lock(mutex_);
    look();
    close_interval();
  }
  write(step_);
}

}  // namespace lockstep
