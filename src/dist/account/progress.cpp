#include "dist/account/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace lockstep {
namespace {

// FNV-1a over eight bytes at a time: all ranks compute it alike, and nobody
// has a reason to forge it.
constexpr uint64_t kStart = 0xcbf29ce484222325, kPrime = 0x100000001b3;

uint64_t mix_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kPrime;
  return hash ^ (hash >> 29);
}

template <std::size_t N>
uint64_t mix_text(uint64_t hash, const char (&text)[N]) {
  static_assert(N % sizeof(uint64_t) == 0);
  uint64_t words[N / sizeof(uint64_t)];
  std::memcpy(words, text, N);
  for (uint64_t word : words) hash = mix_word(hash, word);
  return hash;
}

double seconds_after(RankProgress::Clock::duration::rep since) {
  auto now = RankProgress::Clock::now().time_since_epoch();
  return std::chrono::duration<double>(now - RankProgress::Clock::duration(since)).count();
}

}  // namespace

const char* name_of(Phase phase) {
  static constexpr std::array<const char*, kPhases> kNames = {
      "starting",  "data",  "forward",    "backward",   "wait",
      "optimizer", "other", "evaluation", "checkpoint", "ending"};
  auto index = static_cast<std::size_t>(phase);
  return index < kNames.size() ? kNames[index] : "unknown";
}

uint64_t OperationRecord::own_hash() const {
  return mix_text(mix_text(mix_word(kStart, static_cast<uint64_t>(numel)), name), type);
}

std::string OperationRecord::text() const {
  if (sequence == 0) return "none yet";
  std::string size = type[0] == '\0' ? "" : fmt::format(", {} x {}", with_commas(numel), type);
  return fmt::format("{}{} (operation {})", name, size, sequence);
}

void RankProgress::enter(Phase phase) {
  const Clock::time_point now = Clock::now();
  account_.enter(phase, now);
  phase_.store(phase, std::memory_order_relaxed);
  phase_since_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
}

void RankProgress::begin_step(int64_t step, int64_t epoch) {
  account_.begin_step(step, Clock::now());
  step_.store(step, std::memory_order_relaxed);
  epoch_.store(epoch, std::memory_order_relaxed);
}

void RankProgress::end_step(const StepSums& of_one_step) {
  std::scoped_lock lock(mutex_);
  sums_.steps += of_one_step.steps;
  sums_.targets += of_one_step.targets;
  sums_.compute_seconds += of_one_step.compute_seconds;
  sums_.wait_seconds += of_one_step.wait_seconds;
  sums_.data_seconds += of_one_step.data_seconds;
}

uint64_t RankProgress::start_operation(std::string_view name, int64_t numel,
                                       std::string_view type) {
  std::scoped_lock lock(mutex_);
  uint64_t before = operations_[started_ % kRemembered].fingerprint;
  OperationRecord& record = operations_[++started_ % kRemembered];
  record.sequence = started_;
  record.numel = numel;
  detail::copy_text(name, record.name);
  detail::copy_text(type, record.type);
  record.fingerprint = mix_word(before, record.own_hash());
  return started_;
}

void RankProgress::begin_wait(uint64_t sequence) {
  waiting_since_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  waiting_.store(sequence, std::memory_order_relaxed);
}

void RankProgress::end_wait() {
  waiting_.store(0, std::memory_order_relaxed);
  const Phase phase = phase_.load(std::memory_order_relaxed);
  if (phase != Phase::kForward && phase != Phase::kBackward) return;
  const Clock::duration since(waiting_since_.load(std::memory_order_relaxed));
  account_.stood_still(Clock::time_point(since), Clock::now());
}

ProgressView RankProgress::view() const {
  ProgressView out;
  out.step = step_.load(std::memory_order_relaxed);
  out.epoch = epoch_.load(std::memory_order_relaxed);
  out.phase = phase_.load(std::memory_order_relaxed);
  out.phase_seconds = seconds_after(phase_since_.load(std::memory_order_relaxed));
  out.waiting = waiting_.load(std::memory_order_relaxed);
  if (out.waiting != 0) {
    out.waiting_seconds = seconds_after(waiting_since_.load(std::memory_order_relaxed));
  }
  std::scoped_lock lock(mutex_);
  out.sums = sums_;
  out.started = started_;
  return out;
}

std::vector<OperationRecord> RankProgress::operations(std::size_t most) const {
  std::scoped_lock lock(mutex_);
  std::vector<OperationRecord> out;
  uint64_t count = std::min<uint64_t>({most, kRemembered, started_});
  for (uint64_t s = started_ - count + 1; s <= started_; ++s) {
    out.push_back(operations_[s % kRemembered]);
  }
  return out;
}

OperationRecord RankProgress::last_operation() const {
  std::scoped_lock lock(mutex_);
  return operations_[started_ % kRemembered];
}

std::optional<OperationRecord> RankProgress::operation(uint64_t sequence) const {
  std::scoped_lock lock(mutex_);
  const OperationRecord& record = operations_[sequence % kRemembered];
  if (sequence == 0 || record.sequence != sequence) return {};
  return record;
}

}  // namespace lockstep
