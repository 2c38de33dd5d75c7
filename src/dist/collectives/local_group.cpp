#include "dist/collectives/local_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kLine = 64;
constexpr std::size_t kSlotBytes = std::size_t{512} << 10;
// Up to this size each member adds up everything itself, which takes one wait less
// than summing in parts.
constexpr int64_t kWholeBytes = 32 << 10;
// A longer spin would take a core from the members waited for when there are more threads than
// cores (ranks with their backward passes).
constexpr std::chrono::microseconds kSpin{6};
// How often a sleeping member checks whether the process that it waits for is alive.
constexpr std::chrono::milliseconds kWatch{100};

enum Kind : uint64_t { kAllReduce = 1, kBroadcast, kGather, kBarrier };

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

// What the members tell each other; all zeros at first.
struct LocalGroup::Board {
  struct alignas(kLine) Member {                    // written by this member only
    std::atomic<uint32_t> step;                     // the step it has published
    std::atomic<uint32_t> left;                     // 1: takes part in no more operations
    std::array<uint64_t, 2> operation;              // tag of step s's operation: entry s % 2
    alignas(kLine) std::atomic<uint32_t> sleepers;  // others that may sleep on `step`
  };
  alignas(kLine) std::atomic<uint64_t> failure;  // the first one; 0: none
  Member members[];
};

struct LocalGroup::Failure {
  enum Cause : uint64_t { kDied = 1, kTimedOut, kGaveUp, kLeft, kOther } cause;
  int culprit, witness;  // members

  uint64_t word() const {
    return cause << 32 | static_cast<uint64_t>(culprit) << 16 | static_cast<uint64_t>(witness);
  }
  static Failure from(uint64_t word) {
    return {static_cast<Cause>(word >> 32), static_cast<int>(word >> 16 & 0xffff),
            static_cast<int>(word & 0xffff)};
  }
};

namespace {

std::size_t board_bytes(std::size_t members) {
  constexpr std::size_t kPage = 4096;
  return (kLine + members * 2 * kLine + kPage - 1) / kPage * kPage;
}

}  // namespace

std::size_t LocalGroup::bytes_for(std::size_t members) {
  static_assert(sizeof(Board::Member) == 2 * kLine && sizeof(Board) == kLine);
  return board_bytes(members) + (members + 1) * 2 * kSlotBytes;  // two slots each, and two results
}

LocalGroup::LocalGroup(Members members, SharedMemory memory)
    : members_(std::move(members)), memory_(std::move(memory)), inputs_(members_.ranks.size()) {
  board_ = reinterpret_cast<Board*>(memory_.data());
  for (int member = 0; member < size(); ++member) {
    std::optional<ProcessHandle>& process = processes_.emplace_back();
    if (member != members_.me) process.emplace(members_.processes[member]);
  }
}

LocalGroup::~LocalGroup() {
  board_->members[members_.me].left.store(1, std::memory_order_release);
  wake_members();
}

std::byte* LocalGroup::slot(int member) const {
  std::size_t index = static_cast<std::size_t>(member) * 2 + step_ % 2;
  return memory_.data() + board_bytes(members_.ranks.size()) + index * kSlotBytes;
}

std::byte* LocalGroup::result(uint32_t step) const {
  std::size_t index = members_.ranks.size() * 2 + step % 2;
  return memory_.data() + board_bytes(members_.ranks.size()) + index * kSlotBytes;
}

void LocalGroup::begin(uint64_t kind, uint64_t bytes) {
  uint64_t failure = board_->failure.load(std::memory_order_acquire);
  if (failure != 0) throw_failure(failure);
  operation_ = kind << 56 | bytes;
  started_ = Clock::now();
}

// On entry this member has written its slot of step_; on return the slots of
// all others can be read.
void LocalGroup::step() {
  Board::Member& mine = board_->members[members_.me];
  mine.operation[step_ % 2] = operation_;
  mine.step.store(step_, std::memory_order_seq_cst);
  if (mine.sleepers.load(std::memory_order_seq_cst) != 0) {
    wake_all(reinterpret_cast<const uint32_t*>(&mine.step));
  }
  for (int member = 0; member < size(); ++member) {
    if (member == members_.me) continue;
    wait_for(member);
    if (board_->members[member].operation[step_ % 2] != operation_) {
      fail({Failure::kOther, member, members_.me});
    }
  }
}

bool LocalGroup::has_published(int member) const {
  uint32_t published = board_->members[member].step.load(std::memory_order_seq_cst);
  return static_cast<int32_t>(published - step_) >= 0;
}

bool LocalGroup::spin_for(int member) const {
  constexpr int kLooks = 16;  // between two reads of the clock, which cost more
  const Clock::time_point end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (has_published(member)) return true;
      pause_briefly();
    }
  } while (Clock::now() < end);
  return false;
}

void LocalGroup::wait_for(int member) {
  if (spin_for(member)) return;
  Board::Member& other = board_->members[member];
  other.sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (!has_published(member)) {
    look_after(member);
    uint32_t seen = other.step.load(std::memory_order_seq_cst);
    if (static_cast<int32_t>(seen - step_) >= 0) break;
    std::chrono::nanoseconds limit = started_ + timeout_ - Clock::now();
    limit = std::clamp<std::chrono::nanoseconds>(limit, std::chrono::milliseconds{1}, kWatch);
    sleep_while(reinterpret_cast<const uint32_t*>(&other.step), seen, limit);
  }
  other.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

// Throws when waiting for `member` is pointless.
void LocalGroup::look_after(int member) {
  uint64_t failure = board_->failure.load(std::memory_order_acquire);
  if (failure != 0) throw_failure(failure);
  bool left = board_->members[member].left.load(std::memory_order_acquire) != 0;
  bool alive = processes_[member]->alive();
  if (has_published(member)) return;  // before it left or died
  if (left) fail({Failure::kLeft, member, members_.me});
  if (!alive) fail({Failure::kDied, member, members_.me});
  if (Clock::now() - started_ >= timeout_) fail({Failure::kTimedOut, member, members_.me});
}

void LocalGroup::wake_members() {
  for (int member = 0; member < size(); ++member) {
    wake_all(reinterpret_cast<const uint32_t*>(&board_->members[member].step));
  }
}

void LocalGroup::fail(const Failure& failure) {
  uint64_t first = 0;
  if (board_->failure.compare_exchange_strong(first, failure.word())) first = failure.word();
  wake_members();
  throw_failure(first);
}

void LocalGroup::give_up() {
  Failure mine{Failure::kGaveUp, members_.me, members_.me};
  uint64_t none = 0;
  board_->failure.compare_exchange_strong(none, mine.word());
  wake_members();
}

void LocalGroup::throw_failure(uint64_t word) const {
  Failure failure = Failure::from(word);
  int rank = members_.ranks[failure.culprit];
  int witness = members_.ranks[failure.witness];
  switch (failure.cause) {
    case Failure::kDied:
      throw std::runtime_error(
          fmt::format("rank {} (process {}) died", rank, members_.processes[failure.culprit]));
    case Failure::kTimedOut:
      throw std::runtime_error(fmt::format("rank {} timed out after {:g} s waiting for rank {}",
                                           witness, std::chrono::duration<double>(timeout_).count(),
                                           rank));
    case Failure::kGaveUp:
      throw std::runtime_error(fmt::format("rank {} failed; its log says why", rank));
    case Failure::kLeft:
      throw std::runtime_error(fmt::format("rank {} has left: it was done", rank));
    case Failure::kOther:
      break;
  }
  throw std::runtime_error(
      fmt::format("ranks {} and {} are at different operations", rank, witness));
}

void LocalGroup::all_reduce(void* data, int64_t count, const Summation& summation) {
  int64_t bytes = count * static_cast<int64_t>(summation.element_bytes);
  begin(kAllReduce, bytes);
  auto* begin = static_cast<std::byte*>(data);
  size() == 2 || bytes <= kWholeBytes ? reduce_whole(begin, count, summation)
                                      : reduce_in_parts(begin, count, summation);
}

void LocalGroup::reduce_whole(std::byte* data, int64_t count, const Summation& summation) {
  const auto width = static_cast<int64_t>(summation.element_bytes);
  const int64_t chunk = static_cast<int64_t>(kSlotBytes) / width;
  for (int64_t first = 0; first < count; first += chunk, ++step_) {
    const int64_t elements = std::min(chunk, count - first);
    std::byte* mine = data + first * width;
    std::memcpy(slot(members_.me), mine, elements * width);
    step();
    for (int member = 0; member < size(); ++member) {
      inputs_[member] = member == members_.me ? mine : slot(member);
    }
    summation.sum(inputs_.data(), size(), mine, elements);
  }
  moved(count * width, (size() - 1) * count * width);
}

// For each chunk, every member adds up its part of the chunk over all slots into the result, which
// all copy one step later: one wait per chunk, and one more.
void LocalGroup::reduce_in_parts(std::byte* data, int64_t count, const Summation& summation) {
  const auto width = static_cast<int64_t>(summation.element_bytes);
  const int64_t chunk = static_cast<int64_t>(kSlotBytes) / width;
  const int64_t line = static_cast<int64_t>(kLine) / width;
  const int64_t chunks = (count + chunk - 1) / chunk;
  int64_t own = 0;  // elements that this member adds up
  auto elements_of = [&](int64_t c) { return std::min(chunk, count - c * chunk); };
  for (int64_t c = 0; c <= chunks; ++c, ++step_) {
    if (c < chunks)
      std::memcpy(slot(members_.me), data + c * chunk * width, elements_of(c) * width);
    step();
    if (c < chunks) {
      // Parts consist of whole cache lines.
      const int64_t part = (elements_of(c) + size() * line - 1) / (size() * line) * line;
      const int64_t first = std::min(part * members_.me, elements_of(c));
      const int64_t last = std::min(first + part, elements_of(c));
      own += last - first;
      for (int member = 0; member < size(); ++member)
        inputs_[member] = slot(member) + first * width;
      summation.sum(inputs_.data(), size(), result(step_) + first * width, last - first);
    }
    if (c > 0) {
      std::memcpy(data + (c - 1) * chunk * width, result(step_ - 1), elements_of(c - 1) * width);
    }
  }
  moved((count + own) * width, ((size() - 1) * own + count - own) * width);
}

void LocalGroup::broadcast(std::span<std::byte> data, int root) {
  begin(kBroadcast, data.size());
  for (std::size_t first = 0; first < data.size(); first += kSlotBytes, ++step_) {
    std::span<std::byte> part = data.subspan(first, std::min(kSlotBytes, data.size() - first));
    if (root == members_.me) std::memcpy(slot(root), part.data(), part.size());
    step();
    if (root != members_.me) std::memcpy(part.data(), slot(root), part.size());
  }
  const auto bytes = static_cast<int64_t>(data.size());
  root == members_.me ? moved(bytes, 0) : moved(0, bytes);
}

void LocalGroup::all_gather_slices(std::byte* flat, std::span<const int64_t> cuts) {
  begin(kGather, cuts.back());
  const auto chunk = static_cast<int64_t>(kSlotBytes);
  int64_t longest = 0;
  for (int member = 0; member < size(); ++member) {
    longest = std::max(longest, cuts[member + 1] - cuts[member]);
  }
  for (int64_t offset = 0; offset < longest; offset += chunk, ++step_) {
    auto part_of = [&](int member) {
      int64_t first = std::min(cuts[member] + offset, cuts[member + 1]);
      return std::span(flat + first, flat + std::min(first + chunk, cuts[member + 1]));
    };
    std::span<std::byte> mine = part_of(members_.me);
    if (!mine.empty()) std::memcpy(slot(members_.me), mine.data(), mine.size());
    step();
    for (int member = 0; member < size(); ++member) {
      std::span<std::byte> part = part_of(member);
      if (member == members_.me || part.empty()) continue;
      std::memcpy(part.data(), slot(member), part.size());
    }
  }
  const int64_t own = cuts[members_.me + 1] - cuts[members_.me];
  moved(own, cuts.back() - cuts.front() - own);
}

void LocalGroup::barrier() {
  begin(kBarrier, 0);
  step();
  ++step_;
}

}  // namespace lockstep
