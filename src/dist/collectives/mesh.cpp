#include "dist/collectives/mesh.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// Up to this size each member sends everything to all others, which takes one
// delay less than slices.
constexpr std::size_t kDirectBytes = 256 << 10;
// Bytes that are added up at a time while more arrives: they fit the L2 cache.
constexpr std::size_t kPieceBytes = 128 << 10;
constexpr std::size_t kCacheLine = 64;                       // slices begin at a cache line
constexpr std::size_t kMostReceived = std::size_t{1} << 20;  // from one link at a time

// Bytes to one member of a part of a large sum.
constexpr std::size_t kPartBytes = 128 << 10;

// Returns where part `i` of `n` begins in `bytes`; the last one ends at part n.
std::size_t bound_of(std::size_t bytes, std::size_t i, std::size_t n) {
  return i == n ? bytes : bytes / kCacheLine * i / n * kCacheLine;
}

struct Header {
  uint64_t sum;    // number of the sum
  uint32_t phase;  // 0: to be added up; 1: the result
  uint32_t check;  // equal for sums of the same kind
  uint64_t bytes;  // of what start_sum() was asked for
};

}  // namespace

// What start_sum() was asked for; it consists of one sum or several, each of a part of the data.
struct Mesh::Whole {
  bool direct = true;
  std::size_t bytes = 0;
  std::size_t left = 0;  // sums that are not done
  std::function<void()> finished;
  std::promise<void> promise;
};

// Phase 0 moves addends, phase 1 (with slices only) results.
struct Mesh::Sum {
  uint64_t number = 0;
  std::span<std::byte> data;
  Summation summation{};
  std::size_t begin = 0, end = 0;                               // range that this member adds up
  std::vector<std::size_t> cuts;                                // bounds of the slices
  std::vector<std::size_t> sent0, received0, sent1, received1;  // bytes, by member
  std::vector<std::byte*> addends;                              // by member, of [begin, end)
  std::unique_ptr<std::vector<std::byte>> buffer;
  std::vector<const void*> inputs;
  std::size_t added = 0;  // bytes of end - begin added up so far
  Clock::time_point started = Clock::now();
  std::shared_ptr<Whole> whole;
  bool progressed = false;  // in progressed_

  std::size_t slice(int member) const { return cuts[member + 1] - cuts[member]; }
  bool direct() const { return whole->direct; }
  std::size_t to_send(int member) const { return direct() ? data.size() : slice(member); }
  std::size_t own() const { return end - begin; }
};

struct Mesh::Message {
  std::shared_ptr<Sum> sum;
  uint32_t phase = 0;
  std::size_t sent = 0;  // of header and body together
};

struct Mesh::Link {
  int socket = -1, member = 0;
  Message out;  // being sent; without a sum: nothing
  Header header{};
  std::size_t header_received = 0;
  std::shared_ptr<Sum> in;  // the sum to which the body belongs
  bool early = false;       // a header came of a sum that this member has not begun yet
};

Mesh::Mesh(MeshMembers members, std::vector<std::vector<int>> sockets)
    : members_(std::move(members)),
      event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      waiting_(members_.ranks.size()) {
  for (std::size_t stream = 0; stream < sockets.size(); ++stream) {
    for (int member = 0; member < members_.size(); ++member) {
      if (member == members_.me) continue;
      Link& link = links_.emplace_back();
      link.socket = sockets[stream][member];
      link.member = member;
    }
  }
  // Signals are for the program's main thread: the new thread inherits a mask that blocks them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Mesh::~Mesh() {
  {
    std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
  for (Link& link : links_) close(link.socket);
  close(event_);
}

void Mesh::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t written = write(event_, &one, sizeof one);  // a full counter wakes too
}

void Mesh::give_up() {
  {
    std::scoped_lock lock(mutex_);
    if (failure_.empty()) failure_ = "this rank gave up";
  }
  wake();
}

std::shared_future<void> Mesh::start_sum(std::span<std::byte> data, const Summation& summation,
                                         std::function<void()> finished) {
  auto whole = std::make_shared<Whole>();
  whole->bytes = data.size();
  whole->finished = std::move(finished);
  std::shared_future<void> done = whole->promise.get_future().share();
  if (data.empty()) {
    whole->promise.set_value();
    return done;
  }
  whole->direct = members_.size() == 2 || data.size() <= kDirectBytes;
  const std::size_t to_one = whole->direct ? data.size() : data.size() / members_.ranks.size();
  const std::size_t parts =
      members_.streams == 1 ? 1 : std::max<std::size_t>(1, to_one / kPartBytes);
  whole->left = parts;
  {
    std::scoped_lock lock(mutex_);
    if (!failure_.empty()) throw std::runtime_error(failure_);
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t begin = bound_of(data.size(), part, parts);
      auto sum = std::make_shared<Sum>();
      sum->whole = whole;
      sum->data = data.subspan(begin, bound_of(data.size(), part + 1, parts) - begin);
      sum->summation = summation;
      sum->number = next_++;
      added_.push_back(std::move(sum));
    }
  }
  wake();
  return done;
}

void Mesh::run() {
  std::vector<pollfd> wanted(links_.size() + 1);
  for (;;) {
    std::string failure;
    {
      std::scoped_lock lock(mutex_);
      if (stopping_ && failure_.empty()) failure_ = "this rank has left";
      failure = failure_;
    }
    if (!failure.empty()) {
      fail(failure);
      return;
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const Link& link = links_[i];
      const Message& m = link.out;
      bool sends = m.sum || !waiting_[link.member].empty();
      // A result that waits for addends has nothing to send yet.
      if (m.sum && m.phase == 1 && m.sent >= sizeof(Header) + m.sum->added) sends = false;
      const auto events = static_cast<short>((link.early ? 0 : POLLIN) | (sends ? POLLOUT : 0));
      // A link from which nothing is wanted must not wake this thread when it closes.
      wanted[i] = {events == 0 ? -1 : link.socket, events, 0};
    }
    wanted.back() = {event_, POLLIN, 0};
    constexpr int kLookMilliseconds = 200;  // between checks of the time limits
    poll(wanted.data(), wanted.size(), kLookMilliseconds);
    uint64_t count = 0;
    if (wanted.back().revents != 0) [[maybe_unused]]
      ssize_t n = read(event_, &count, sizeof count);
    try {
      begin_added();
      for (std::size_t i = 0; i < links_.size(); ++i) {
        if ((wanted[i].revents & (POLLIN | POLLERR | POLLHUP)) != 0) receive_some(links_[i]);
        if ((wanted[i].revents & POLLOUT) != 0) send_some(links_[i]);
      }
      advance_progressed();
      look_at_clock();
    } catch (const std::exception& error) {
      std::scoped_lock lock(mutex_);
      if (failure_.empty()) failure_ = error.what();
    }
  }
}

// Makes all running sums throw and closes the connections to the others.
void Mesh::fail(const std::string& why) {
  std::vector<std::shared_ptr<Sum>> all(running_.begin(), running_.end());
  {
    std::scoped_lock lock(mutex_);
    all.insert(all.end(), added_.begin(), added_.end());
    added_.clear();
  }
  running_.clear();
  progressed_.clear();
  for (const auto& sum : all) {
    if (std::exchange(sum->whole->left, 0) == 0) continue;
    sum->whole->promise.set_exception(std::make_exception_ptr(std::runtime_error(why)));
  }
  for (Link& link : links_) {
    link.out = {};
    link.in.reset();
    shutdown(link.socket, SHUT_RDWR);
  }
  for (std::deque<Message>& messages : waiting_) messages.clear();
}

void Mesh::begin_added() {
  std::vector<std::shared_ptr<Sum>> added;
  {
    std::scoped_lock lock(mutex_);
    added = std::exchange(added_, {});
  }
  for (const std::shared_ptr<Sum>& sum : added) begin(sum);
  if (added.empty()) return;
  for (Link& link : links_) {
    link.early = false;
    send_some(link);
  }
}

void Mesh::begin(const std::shared_ptr<Sum>& sum) {
  Sum& s = *sum;
  const auto n = static_cast<std::size_t>(members_.size());
  for (std::size_t m = 0; m <= n; ++m) s.cuts.push_back(bound_of(s.data.size(), m, n));
  s.begin = s.direct() ? 0 : s.cuts[members_.me];
  s.end = s.direct() ? s.data.size() : s.cuts[members_.me + 1];
  for (auto* counts : {&s.sent0, &s.received0, &s.sent1, &s.received1}) counts->assign(n, 0);
  if (!spare_.empty()) {
    s.buffer = std::move(spare_.back());
    spare_.pop_back();
  } else {
    s.buffer = std::make_unique<std::vector<std::byte>>();
  }
  if (s.buffer->size() < s.own() * (n - 1)) s.buffer->resize(s.own() * (n - 1));
  std::byte* at = s.buffer->data();
  s.inputs.resize(n);
  for (int m = 0; m < members_.size(); ++m) {
    s.addends.push_back(m == members_.me ? s.data.data() + s.begin : at);
    if (m != members_.me) at += s.own();
  }
  running_.push_back(sum);
  for (int m = 0; m < members_.size(); ++m) {
    if (m == members_.me) continue;
    waiting_[m].push_back({sum, 0, 0});
    if (!s.direct()) waiting_[m].push_back({sum, 1, 0});
  }
}

// `result`: the return value of the system call that failed.
void Mesh::throw_broken(const Link& link, ssize_t result) const {
  throw std::runtime_error(fmt::format("the connection to rank {} broke: {}",
                                       members_.ranks[link.member],
                                       result == 0 ? "closed by that rank" : std::strerror(errno)));
}

// Sends as much as the connection takes and is ready. Connections that take more, because they come
// first or are faster, so carry more of what waits.
void Mesh::send_some(Link& link) {
  std::deque<Message>& waiting = waiting_[link.member];
  for (;;) {
    if (!link.out.sum) {
      if (waiting.empty()) return;
      link.out = std::move(waiting.front());
      waiting.pop_front();
    }
    Message& m = link.out;
    Sum& s = *m.sum;
    const bool addends = m.phase == 0;
    const std::byte* body =
        addends ? s.data.data() + (s.direct() ? 0 : s.cuts[link.member]) : s.data.data() + s.begin;
    const std::size_t bytes = addends ? s.to_send(link.member) : s.own();
    const std::size_t ready = addends ? bytes : s.added;
    const Header header{s.number, m.phase, static_cast<uint32_t>(s.summation.element_bytes),
                        s.whole->bytes};
    const std::size_t header_sent = std::min(m.sent, sizeof header);
    const std::size_t body_sent = m.sent - header_sent;
    iovec parts[2] = {
        {const_cast<std::byte*>(reinterpret_cast<const std::byte*>(&header)) + header_sent,
         sizeof header - header_sent},
        {const_cast<std::byte*>(body) + body_sent, ready - body_sent}};
    if (parts[0].iov_len + parts[1].iov_len > 0) {
      msghdr message{};
      message.msg_iov = parts;
      message.msg_iovlen = 2;
      ssize_t n = sendmsg(link.socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (n < 0) throw_broken(link, n);
      m.sent += static_cast<std::size_t>(n);
      note_progress(m.sum);
    }
    const std::size_t done = m.sent > sizeof header ? m.sent - sizeof header : 0;
    (addends ? s.sent0 : s.sent1)[link.member] = done;
    if (m.sent < sizeof header + bytes) return;
    link.out = {};
  }
}

// Returns false when the header is incomplete, or of a sum that this member has not begun.
bool Mesh::receive_header(Link& link) {
  Header& h = link.header;
  if (link.header_received < sizeof h) {
    auto* to = reinterpret_cast<std::byte*>(&h) + link.header_received;
    ssize_t n = recv(link.socket, to, sizeof h - link.header_received, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n <= 0) throw_broken(link, n);
    link.header_received += static_cast<std::size_t>(n);
    if (link.header_received < sizeof h) return false;
  }
  const auto found = place_of(h.sum);
  link.early = found == running_.end() || (*found)->number != h.sum;
  if (link.early) return false;
  const Sum& s = **found;
  if (h.bytes != s.whole->bytes || h.check != s.summation.element_bytes) {
    throw std::runtime_error(fmt::format("ranks {} and {} are at different operations",
                                         members_.ranks[link.member], members_.ranks[members_.me]));
  }
  link.in = *found;
  return true;
}

void Mesh::receive_some(Link& link) {
  std::size_t most = kMostReceived;
  while (most > 0) {
    if (!link.in && !receive_header(link)) return;
    Sum& s = *link.in;
    const bool addends = link.header.phase == 0;
    std::size_t& received = (addends ? s.received0 : s.received1)[link.member];
    const std::size_t bytes = addends ? s.own() : s.slice(link.member);
    std::byte* to = addends ? s.addends[link.member] : s.data.data() + s.cuts[link.member];
    if (received < bytes) {
      ssize_t n = recv(link.socket, to + received, std::min(bytes - received, most), MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (n <= 0) throw_broken(link, n);
      received += static_cast<std::size_t>(n);
      note_progress(link.in);
      most -= static_cast<std::size_t>(n);
    }
    if (received < bytes) continue;
    link.in.reset();
    link.header_received = 0;
  }
}

// Adds up what has arrived from all members.
void Mesh::advance(Sum& s) {
  if (s.added == s.own()) return;
  std::size_t there = s.own();
  for (int m = 0; m < members_.size(); ++m) {
    if (m == members_.me) continue;
    there = std::min(there, s.received0[m]);
    if (s.direct()) there = std::min(there, s.sent0[m]);  // the sum overwrites the addend
  }
  if (there < s.own() && there < s.added + kPieceBytes) return;
  add_up(s, there < s.own() ? there / kCacheLine * kCacheLine : there);
  if (s.direct()) return;
  for (Link& link : links_) send_some(link);
}

void Mesh::add_up(Sum& s, std::size_t end) {
  while (s.added < end) {
    const std::size_t bytes = std::min(kPieceBytes, end - s.added);
    for (int m = 0; m < members_.size(); ++m) s.inputs[m] = s.addends[m] + s.added;
    s.summation.sum(s.inputs.data(), members_.size(), s.data.data() + s.begin + s.added,
                    static_cast<int64_t>(bytes / s.summation.element_bytes));
    s.added += bytes;
  }
}

bool Mesh::is_done(const Sum& s) const {
  if (s.added < s.own()) return false;
  for (int m = 0; m < members_.size(); ++m) {
    if (m == members_.me) continue;
    if (s.received0[m] < s.own() || s.sent0[m] < s.to_send(m)) return false;
    if (!s.direct() && (s.received1[m] < s.slice(m) || s.sent1[m] < s.own())) return false;
  }
  return true;
}

// Returns the running sum of this number, or the first one behind it.
std::deque<std::shared_ptr<Mesh::Sum>>::iterator Mesh::place_of(uint64_t number) {
  return std::lower_bound(running_.begin(), running_.end(), number,
                          [](const auto& sum, uint64_t wanted) { return sum->number < wanted; });
}

void Mesh::note_progress(const std::shared_ptr<Sum>& sum) {
  if (!std::exchange(sum->progressed, true)) progressed_.push_back(sum);
}

// Looks at the sums of which bytes were sent or received: large models have thousands of others.
void Mesh::advance_progressed() {
  while (!progressed_.empty()) {  // results that can be sent now move further ones
    for (const std::shared_ptr<Sum>& sum : std::exchange(progressed_, {})) {
      sum->progressed = false;
      advance(*sum);
      const auto place = place_of(sum->number);
      const bool running = place != running_.end() && *place == sum;
      if (!running || !is_done(*sum)) continue;
      running_.erase(place);
      spare_.push_back(std::move(sum->buffer));
      tell_finished(*sum);
    }
  }
}

void Mesh::tell_finished(const Sum& s) {
  auto total = [](const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
    return static_cast<int64_t>(std::reduce(a.begin(), a.end()) + std::reduce(b.begin(), b.end()));
  };
  if (MovedBytes* moved = moved_) {
    moved->add(total(s.sent0, s.sent1), total(s.received0, s.received1));
  }
  if (--s.whole->left > 0) return;
  if (s.whole->finished) s.whole->finished();
  s.whole->promise.set_value();
}

void Mesh::look_at_clock() {
  if (running_.empty()) return;
  const Sum& s = *running_.front();
  const std::chrono::nanoseconds limit = timeout_;
  if (Clock::now() - s.started < limit) return;
  int late = members_.me == 0 ? 1 : 0;
  for (int m = 0; m < members_.size(); ++m) {
    const bool missing = m != members_.me &&
                         (s.received0[m] < s.own() || (!s.direct() && s.received1[m] < s.slice(m)));
    if (missing) late = m;
  }
  throw std::runtime_error(
      fmt::format("rank {} timed out after {:g} s waiting for rank {}", members_.ranks[members_.me],
                  std::chrono::duration<double>(limit).count(), members_.ranks[late]));
}

}  // namespace lockstep
