#include "dist/liveness/heartbeat_links.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "dist/rank/network.h"

namespace lockstep {
namespace {

using Time = RankSeen::Time;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;  // of a frame between ranks
constexpr std::size_t kMostStrangers = 64;                // at a time, in addition to the ranks
constexpr std::chrono::seconds kGreetingLimit{10};
constexpr double kConnectSeconds = 15;

double clock_of_the_day() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

RankIdentity own_identity(int rank) {
  RankIdentity out{.rank = rank, .process = getpid()};
  char name[sizeof out.host] = {};
  const char* given = std::getenv("LOCKSTEP_HOST");
  if (given == nullptr || *given == '\0') gethostname(name, sizeof name - 1);
  detail::copy_text(given != nullptr && *given != '\0' ? given : name, out.host);
  return out;
}

LeaderLinks::LeaderLinks(int size, const std::string& address, const Token& secret)
    : listener_(listen_on(address, 0)), door_(secret), beats_(size, 0) {
  meeting_ = to_text({address, port_of(listener_), door_.token()});
  for (int rank = 0; rank < size; ++rank) links_.emplace_back(-1);
}

LeaderLinks::~LeaderLinks() { close(listener_); }

void LeaderLinks::add_to(std::vector<pollfd>& wanted) const {
  wanted.push_back({listener_, POLLIN, 0});
  for (const Stranger& s : strangers_) wanted.push_back({s.socket.descriptor(), POLLIN, 0});
  for (const BeatSocket& link : links_) {
    if (link.is_open()) wanted.push_back({link.descriptor(), POLLIN, 0});
  }
}

// Every heartbeat of any rank wakes the thread: to read from all links each time would take a
// number of system calls that grows with the square of the ranks.
void LeaderLinks::serve(std::vector<RankSeen>& ranks, Time now) {
  let_in(ranks, now);
  std::vector<pollfd> news;
  for (const BeatSocket& link : links_) news.push_back({link.descriptor(), POLLIN, 0});
  poll(news.data(), news.size(), 0);  // ignores those that are closed
  for (std::size_t rank = 1; rank < links_.size(); ++rank) {
    BeatSocket& link = links_[rank];
    if (!link.is_open()) continue;
    if (link.has_backlog()) link.flush();
    if (news[rank].revents != 0) link.receive();
    // Also what came together with a greeting.
    while (auto frame = link.next()) hear(*frame, ranks, static_cast<int>(rank), now);
    if (link.is_open() || ranks[rank].presence != Presence::kHere) continue;
    ranks[rank].presence = Presence::kClosed;
    ranks[rank].closed = now;
  }
}

void LeaderLinks::let_in(std::vector<RankSeen>& ranks, Time now) {
  const std::size_t most = kMostStrangers + links_.size();
  for (;;) {
    pollfd wanted{listener_, POLLIN, 0};
    if (poll(&wanted, 1, 0) <= 0) break;
    int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) break;
    strangers_.push_back({BeatSocket(fd), now});
    if (strangers_.size() > most) strangers_.erase(strangers_.begin());
  }
  std::erase_if(strangers_, [&](Stranger& s) { return greet(s, ranks, now); });
}

// Returns true when this connection is no stranger's any more, or is to be closed.
bool LeaderLinks::greet(Stranger& stranger, std::vector<RankSeen>& ranks, Time now) {
  stranger.socket.receive();
  std::optional<BeatFrame> frame = stranger.socket.next();
  if (!frame) return !stranger.socket.is_open() || now - stranger.since > kGreetingLimit;
  if (frame->type != BeatType::kGreeting || frame->body.size() != sizeof(BeatGreeting)) return true;
  auto greeting = BeatReader(frame->body).take<BeatGreeting>();
  const std::optional<Proof> answer = door_.admit(greeting.introduction);
  const int rank = greeting.identity.rank;
  bool known = answer && greeting.layout == wire_layout() && rank > 0 &&
               rank < static_cast<int>(links_.size()) && ranks[rank].presence == Presence::kAbsent;
  if (!known) return true;
  links_[rank] = std::move(stranger.socket);
  links_[rank].send(BeatType::kWelcome, BeatWriter().add(*answer).body());
  links_[rank].set_limit(kMostBytes);
  ranks[rank].identity = greeting.identity;
  detail::copy_text(peer_address(links_[rank].descriptor()), ranks[rank].identity.address);
  ranks[rank].presence = Presence::kHere;
  ranks[rank].seen = now;
  return true;
}

void LeaderLinks::hear(const BeatFrame& frame, std::vector<RankSeen>& ranks, int rank,
                       Time now) try {
  RankSeen& seen = ranks[rank];
  BeatReader body(frame.body);
  seen.seen = now;
  switch (frame.type) {
    case BeatType::kBeat: {
      auto sent = body.take<double>();
      seen.status = body.take<RankStatus>();
      std::vector<OperationRecord>& known = seen.operations;
      for (auto left = body.take<uint32_t>(); left > 0; --left) {
        known.push_back(body.take<OperationRecord>());
      }
      if (std::ssize(known) > kBeatOperations)
        known.erase(known.begin(), known.end() - kBeatOperations);
      return answer(ranks, rank, now, sent);
    }
    case BeatType::kTrouble:
      seen.trouble = frame.body;
      seen.trouble_since = now;
      return;
    case BeatType::kFailure:
      seen.failure = frame.body;
      seen.failure_since = now;
      return;
    case BeatType::kFarewell:
      seen.presence = Presence::kDone;
      return;
    case BeatType::kMachine:
      seen.machine = body.take<MachineFigures>();
      seen.machine.gpus = std::clamp(seen.machine.gpus, 0, kMostGpus);
      return;
    case BeatType::kStop: {
      const auto stop = body.take<StopMessage>();
      if (stop.kind == StopMessage::kAsked) seen.stop_here = true;
      if (stop.kind == StopMessage::kFirst) seen.stop_first = stop.step;
      return;
    }
    default:
      return;
  }
} catch (const std::runtime_error&) {
  links_[rank].close();
}

// The whole table is sent less often when there are many ranks, because its size
// grows with their number.
void LeaderLinks::answer(const std::vector<RankSeen>& ranks, int rank, Time now, double beat_sent) {
  if (links_[rank].has_backlog()) return;
  const int table_every = 1 + static_cast<int>(ranks.size()) / 16;
  BeatAnswer head{.beat_sent = beat_sent, .received = clock_of_the_day()};
  bool whole = beats_[rank]++ % table_every == 0;
  head.count = whole ? static_cast<uint32_t>(ranks.size()) : 0;
  head.sent = clock_of_the_day();
  BeatWriter body;
  body.add(head);
  for (std::size_t r = 0; r < head.count; ++r) {
    const RankSeen& seen = ranks[r];
    BeatTableEntry entry{
        .identity = seen.identity, .status = seen.status, .presence = seen.presence};
    entry.age_seconds = std::chrono::duration<double>(now - seen.seen).count();
    if (!seen.operations.empty()) entry.last = seen.operations.back();
    body.add(entry);
  }
  links_[rank].send(BeatType::kAnswer, body.body());
}

void LeaderLinks::tell_all(BeatType type, std::string_view body) {
  for (BeatSocket& link : links_) link.send(type, body);
}

void LeaderLinks::flush() {
  for (BeatSocket& link : links_) link.flush();
}

FollowerLink::FollowerLink(const std::string& meeting, const Token& secret, RankIdentity& identity)
    : FollowerLink(meeting_place_of(meeting), secret, identity) {}

FollowerLink::FollowerLink(const MeetingPlace& place, const Token& secret, RankIdentity& identity)
    : visitor_(secret, place.token),
      link_(connect_to(place.address, place.port, kConnectSeconds, "rank 0's heartbeat")) {
  link_.set_limit(kMostBytes);
  detail::copy_text(own_address(link_.descriptor()), identity.address);
  const BeatGreeting greeting{
      .introduction = visitor_.introduction(), .layout = wire_layout(), .identity = identity};
  link_.send(BeatType::kGreeting, BeatWriter().add(greeting).body());
}

void FollowerLink::add_to(std::vector<pollfd>& wanted) const {
  if (link_.is_open()) wanted.push_back({link_.descriptor(), POLLIN, 0});
}

void FollowerLink::beat(RankStatus status, const std::vector<OperationRecord>& newest) {
  if (link_.has_backlog()) return link_.flush();
  status.clock_offset_seconds = offset_;
  status.round_trip_seconds = round_trip_;
  auto fresh = std::find_if(newest.begin(), newest.end(), [this](const OperationRecord& o) {
    return o.sequence > told_operation_;
  });
  BeatWriter body;
  body.add(clock_of_the_day()).add(status).add(static_cast<uint32_t>(newest.end() - fresh));
  for (auto o = fresh; o != newest.end(); ++o) body.add(*o);
  if (!newest.empty()) told_operation_ = newest.back().sequence;
  link_.send(BeatType::kBeat, body.body());
}

void FollowerLink::tell(const MachineFigures& machine) {
  if (!link_.has_backlog()) link_.send(BeatType::kMachine, BeatWriter().add(machine).body());
}

void FollowerLink::say(BeatType type, std::string_view text) {
  link_.send(type, text.substr(0, kMostBytes / 16));
}

std::optional<RankVerdict> FollowerLink::serve(std::vector<RankSeen>& ranks, Time now) try {
  std::optional<RankVerdict> verdict;
  if (!link_.is_open()) return verdict;
  link_.flush();
  link_.receive();
  while (auto frame = link_.next()) {
    if (!welcome_) {
      welcome_ = is_welcome(*frame);
      if (welcome_) continue;
      link_.close();
      break;
    }
    ranks[0].seen = now;
    BeatReader body(frame->body);
    if (frame->type == BeatType::kAnswer) hear_answer(*frame, ranks, now);
    if (frame->type == BeatType::kFarewell) leader_done_ = true;
    if (frame->type == BeatType::kStop) stops_.push_back(body.take<StopMessage>());
    if (frame->type != BeatType::kVerdict) continue;
    verdict.emplace();
    for (auto left = body.take<uint32_t>(); left > 0; --left) {
      verdict->ranks.push_back(body.take<int32_t>());
    }
    verdict->headline = body.take_text();
    verdict->detail = body.take_text();
    verdict->advice = body.take_text();
  }
  if (leader_done_) ranks[0].presence = Presence::kDone;
  if (!link_.is_open() && !leader_done_) {
    ranks[0].presence = Presence::kClosed;
    ranks[0].closed = now;
  }
  return verdict;
} catch (const std::runtime_error&) {
  link_.close();
  return {};
}

bool FollowerLink::is_welcome(const BeatFrame& frame) const {
  return frame.type == BeatType::kWelcome &&
         visitor_.recognises(BeatReader(frame.body).take<Proof>());
}

void FollowerLink::hear_answer(const BeatFrame& frame, std::vector<RankSeen>& ranks, Time now) {
  BeatReader body(frame.body);
  auto head = body.take<BeatAnswer>();
  estimate_clock(head);
  for (std::size_t r = 0; r < std::min<std::size_t>(head.count, ranks.size()); ++r) {
    auto entry = body.take<BeatTableEntry>();
    RankSeen& seen = ranks[r];
    seen.identity = entry.identity;
    seen.status = entry.status;
    seen.presence = entry.presence;
    seen.seen = now - std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::duration<double>(entry.age_seconds));
    seen.operations.assign(entry.last.sequence == 0 ? 0 : 1, entry.last);
  }
}

// Estimates as NTP does: half the difference between the way there and the way back (RFC 5905,
// section 8).
void FollowerLink::estimate_clock(const BeatAnswer& head) {
  const double arrived = clock_of_the_day();
  const double round_trip = (arrived - head.beat_sent) - (head.sent - head.received);
  const double offset = ((head.beat_sent - head.received) + (arrived - head.sent)) / 2;
  clocks_[answers_++ % clocks_.size()] = {round_trip, offset};
  auto end = clocks_.begin() + static_cast<std::ptrdiff_t>(std::min(answers_, clocks_.size()));
  std::tie(round_trip_, offset_) = *std::min_element(clocks_.begin(), end);
}

std::string verdict_frame(const RankVerdict& verdict) {
  BeatWriter body;
  body.add(static_cast<uint32_t>(verdict.ranks.size()));
  for (int32_t rank : verdict.ranks) body.add(rank);
  body.add_text(verdict.headline).add_text(verdict.detail).add_text(verdict.advice);
  return body.body();
}

}  // namespace lockstep
