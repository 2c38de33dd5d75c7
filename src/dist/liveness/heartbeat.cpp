#include "dist/liveness/heartbeat.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "dist/liveness/heartbeat_links.h"
#include "dist/liveness/peer_error.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kTurn{250};  // between two turns of the thread
constexpr milliseconds kSoon{50};   // while something is about to be decided
// Time from the verdict to the forced end of a rank that does not stop by itself: while it
// computes, while it writes a checkpoint, and while it is ending.
constexpr seconds kStuck{3}, kStuckSaving{60}, kStuckLeaving{30};

milliseconds to_milliseconds(double value) {
  return milliseconds(static_cast<int64_t>(value * 1000));
}

}  // namespace

Heartbeat::Heartbeat(int rank, int size, const DetectorOptions& options)
    : rank_(rank),
      size_(size),
      options_(options),
      judge_(options, progress_),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      ranks_(size) {
  for (int r = 0; r < size; ++r) ranks_[r].identity.rank = r;
  ranks_[rank].identity = own_identity(rank);
}

Heartbeat::~Heartbeat() {
  leave(false);
  if (wake_ >= 0) close(wake_);
}

std::string Heartbeat::open(const std::string& address, const Token& secret) {
  leader_ = std::make_unique<LeaderLinks>(size_, address, secret);
  address.copy(ranks_[0].identity.address, sizeof ranks_[0].identity.address - 1);
  return leader_->meeting();
}

void Heartbeat::join(const std::string& meeting, const Token& secret) {
  follower_ = std::make_unique<FollowerLink>(meeting, secret, ranks_[rank_].identity);
}

void Heartbeat::start(const std::string& interface, bool for_machine) {
  {
    std::scoped_lock lock(mutex_);
    sampler_ = std::make_unique<HostSampler>(
        HostUsageOptions{.interface = interface, .machine = for_machine});
    ranks_[0].seen = std::chrono::steady_clock::now();
    ranks_[0].presence = ranks_[rank_].presence = Presence::kHere;
  }
  // Signals are for the program's main thread: the new thread inherits a mask that blocks them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Heartbeat::wake() {
  uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(wake_, &one, sizeof one);
}

std::optional<RankVerdict> Heartbeat::verdict() {
  if (!is_decided_.load(std::memory_order_acquire)) return {};
  noticed_ = true;
  std::scoped_lock lock(mutex_);
  return verdict_;
}

std::optional<RankVerdict> Heartbeat::ask(const std::string& trouble) {
  if (!thread_.joinable() || size_ == 1) return {};
  std::unique_lock lock(mutex_);
  if (new_trouble_.empty()) new_trouble_ = trouble.empty() ? "it failed" : trouble;
  wake();
  // Where rank 0 itself is silent, this takes as long as silence is allowed to last.
  auto limit = to_milliseconds(std::max(3.0, options_.lost_seconds + 1));
  decided_.wait_for(lock, limit, [this] {
    return verdict_ || ranks_[0].presence == Presence::kDone || leaving_;
  });
  noticed_ = true;
  return verdict_;
}

void Heartbeat::report_failure(const std::string& why) {
  std::scoped_lock lock(mutex_);
  if (verdict_ || !new_failure_.empty()) return;
  new_failure_ = why.substr(0, why.find('\n'));
  wake();
}

void Heartbeat::leave(bool clean) {
  {
    std::scoped_lock lock(mutex_);
    if (!leaving_) clean_ = clean;
    leaving_ = true;
  }
  stop_.release();
  wake();
  if (thread_.joinable()) thread_.join();
}

void Heartbeat::on_verdict(std::function<void()> interrupt) {
  std::scoped_lock lock(interrupting_);
  interrupt_ = std::move(interrupt);
  if (is_decided_ && interrupt_) interrupt_();
}

void Heartbeat::when_stuck(std::function<void(const RankVerdict&)> last_words) {
  std::scoped_lock lock(mutex_);
  last_words_ = std::move(last_words);
}

std::vector<RankSeen> Heartbeat::ranks() {
  std::scoped_lock lock(mutex_);
  return ranks_;
}

std::vector<std::string> Heartbeat::take_warnings() {
  std::scoped_lock lock(mutex_);
  return std::exchange(warnings_, {});
}

void Heartbeat::run() {
  milliseconds pause{0};
  for (bool over = false; !over;) {
    wait_for_news(pause);
    const Time now = std::chrono::steady_clock::now();
    turn(now);
    end_if_stuck(now);
    std::scoped_lock lock(mutex_);
    over = leaving_;
    bool soon = false;
    for (const RankSeen& r : ranks_) {
      soon = soon || r.presence == Presence::kClosed || !r.trouble.empty() || !r.failure.empty();
    }
    pause = soon && !verdict_ ? kSoon : std::min(kTurn, to_milliseconds(options_.beat_seconds));
  }
  say_farewell();
}

void Heartbeat::wait_for_news(milliseconds most) {
  std::vector<pollfd> wanted{{wake_, POLLIN, 0}};
  if (leader_) leader_->add_to(wanted);
  if (follower_) follower_->add_to(wanted);
  poll(wanted.data(), wanted.size(), static_cast<int>(most.count()));
  uint64_t count = 0;
  [[maybe_unused]] ssize_t got = read(wake_, &count, sizeof count);
}

// Receives, answers and judges once.
void Heartbeat::turn(Time now) {
  std::optional<RankVerdict> verdict;
  {
    std::scoped_lock lock(mutex_);
    look_at_myself(now);
    if (leader_) leader_->serve(ranks_, now);
    if (follower_) verdict = follower_->serve(ranks_, now);
    if (verdict_) return;
    spread_stop();
    if (rank_ == 0) {
      verdict = judge_.judge(ranks_, now);
      if (auto warning = judge_.warning(ranks_, now)) warnings_.push_back(*warning);
    }
  }
  if (verdict) return settle(*verdict);
  if (follower_) judge_leader(now);
}

// REQUIRES that mutex_ is held.
void Heartbeat::look_at_myself(Time now) {
  RankSeen& mine = ranks_[rank_];
  mine.status.progress = progress_.view();
  mine.seen = now;
  mine.presence = Presence::kHere;
  mine.operations = progress_.operations(kBeatOperations);
  look_at_host(mine);
  const bool news = !new_trouble_.empty() || !new_failure_.empty();
  if (now >= next_beat_ || news) {
    if (follower_) follower_->beat(mine.status, mine.operations);
    next_beat_ = now + to_milliseconds(options_.beat_seconds);
  }
  if (mine.trouble.empty() && !new_trouble_.empty()) {
    mine.trouble = new_trouble_;
    mine.trouble_since = now;
    if (follower_) follower_->say(BeatType::kTrouble, mine.trouble);
  }
  if (mine.failure.empty() && !new_failure_.empty()) {
    mine.failure = new_failure_;
    mine.failure_since = now;
    if (follower_) follower_->say(BeatType::kFailure, mine.failure);
  }
}

// REQUIRES that mutex_ is held; the sampler never makes it wait.
void Heartbeat::look_at_host(RankSeen& mine) {
  if (!sampler_) return;
  const HostSample newest = sampler_->newest();
  mine.status.usage = newest.process;
  if (newest.machine.samples == mine.machine.samples) return;
  mine.machine = newest.machine;
  if (follower_) follower_->tell(mine.machine);
}

// Carries a stop from the rank that a signal reached to all others, and what they answer.
// REQUIRES that mutex_ is held.
void Heartbeat::spread_stop() {
  if (rank_ == 0) return lead_stop();
  if (!follower_) return;
  const auto say = [this](StopMessage::Kind kind, int64_t step) {
    follower_->say(BeatType::kStop, BeatWriter().add(StopMessage{kind, step}).body());
  };
  if (stop_.here() && !std::exchange(stop_spread_, true)) say(StopMessage::kAsked, 0);
  for (const StopMessage& message : follower_->take_stops()) {
    if (message.kind == StopMessage::kAsked) say(StopMessage::kFirst, stop_.hold());
    if (message.kind == StopMessage::kStep) stop_.announce(message.step);
  }
}

void Heartbeat::lead_stop() {
  const auto tell = [this](StopMessage::Kind kind, int64_t step) {
    if (leader_)
      leader_->tell_all(BeatType::kStop, BeatWriter().add(StopMessage{kind, step}).body());
  };
  bool asked = stop_.here();
  for (const RankSeen& r : ranks_) asked = asked || r.stop_here;
  if (!asked || stop_settled_) return;
  if (!std::exchange(stop_spread_, true)) {
    tell(StopMessage::kAsked, 0);
    ranks_[0].stop_first = stop_.hold();
  }
  int64_t last = 0;
  for (const RankSeen& r : ranks_) {
    if (r.presence != Presence::kHere) continue;
    if (!r.stop_first) return;  // its answer is on the way
    last = std::max(last, *r.stop_first);
  }
  stop_settled_ = true;
  tell(StopMessage::kStep, last);
  stop_.announce(last);
}

// Judges rank 0, which cannot say itself that it is lost.
void Heartbeat::judge_leader(Time now) {
  std::optional<RankVerdict> verdict;
  {
    std::scoped_lock lock(mutex_);
    constexpr seconds kAwake{2};
    if (last_turn_ != Time{} && now - last_turn_ > kAwake) ranks_[0].seen = now;  // suspended
    last_turn_ = now;
    const RankSeen& leader = ranks_[0];
    bool closed = leader.presence == Presence::kClosed;
    std::chrono::duration<double> quiet = now - leader.seen;
    bool silent = options_.lost_seconds > 0 && leader.presence == Presence::kHere &&
                  quiet.count() > options_.lost_seconds;
    if (closed || silent) verdict = leader_lost(ranks_, closed, now);
    if (leader.presence == Presence::kDone) decided_.notify_all();
  }
  if (verdict) settle(*verdict);
}

void Heartbeat::settle(const RankVerdict& verdict) {
  {
    std::scoped_lock lock(mutex_);
    if (verdict_) return;
    verdict_ = verdict;
    verdict_time_ = std::chrono::steady_clock::now();
    is_decided_ = true;
    if (leader_) leader_->tell_all(BeatType::kVerdict, verdict_frame(verdict));
  }
  decided_.notify_all();
  stop_.release();
  std::scoped_lock running(interrupting_);
  if (interrupt_) interrupt_();
}

void Heartbeat::end_if_stuck(Time now) {
  std::unique_lock lock(mutex_);
  if (!verdict_ || leaving_ || size_ == 1) return;
  seconds limit = noticed_ ? kStuckLeaving : kStuck;
  if (progress_.view().phase == Phase::kCheckpoint) limit = kStuckSaving;
  if (now - verdict_time_ < limit) return;
  auto last_words = last_words_;
  RankVerdict verdict = *verdict_;
  lock.unlock();
  if (last_words) {
    last_words(verdict);
  } else {
    std::string who = fmt::format("rank {} of {}", rank_, size_);
    fmt::print(stderr, "error: {}\n",
               verdict_error(verdict, who, "work that it did not leave in time").describe());
  }
  std::fflush(nullptr);
  _exit(kExitMachine);
}

// Tells the others how this rank ends; the thread does this last.
void Heartbeat::say_farewell() {
  std::optional<RankVerdict> own;
  {
    std::scoped_lock lock(mutex_);
    if (!clean_ && !verdict_ && ranks_[rank_].failure.empty()) {
      new_failure_ = "it ended with an error";
      look_at_myself(std::chrono::steady_clock::now());
    }
    // Rank 0 judges as of a moment later, because then nobody will be there to judge.
    constexpr milliseconds kMoment{310};
    if (leader_ && !clean_ && !verdict_) {
      own = judge_.judge(ranks_, std::chrono::steady_clock::now() + kMoment);
    }
  }
  if (own) settle(*own);
  std::scoped_lock lock(mutex_);
  if (leader_ && clean_) leader_->tell_all(BeatType::kFarewell, "");
  if (follower_ && clean_) follower_->say(BeatType::kFarewell, "");
  if (leader_) leader_->flush();
  if (follower_) follower_->flush();
}

}  // namespace lockstep
