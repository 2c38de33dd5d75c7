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
#include <stdexcept>
#include <utility>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// Up to this size each member sends everything to all others, which takes one
// delay less than slices.
constexpr std::size_t kDirectBytes = 256 << 10;
constexpr std::size_t kMostReceived = std::size_t{1} << 20;  // from one link at a time
constexpr std::size_t kPartBytes = 128 << 10;  // to one member of a part of a large sum

struct Header {
  uint64_t sum;  // its number
  MeshPhase phase;
  uint32_t element_bytes;
  uint64_t bytes;  // of what start_sum() was asked for
};

}  // namespace

struct Mesh::Message {
  std::shared_ptr<MeshSum> sum;
  MeshPhase phase = MeshPhase::kAddends;
  std::size_t header_sent = 0;
};

struct Mesh::Link {
  int socket = -1, member = 0;
  Message out;  // being sent; without a sum: nothing
  Header header{};
  std::size_t header_received = 0;
  std::shared_ptr<MeshSum> in;  // the sum to which the body belongs
  bool early = false;           // a header came of a sum that this member has not begun yet
  std::string broken;           // how it ended, if it did
  bool closed = false;          // it did by the other's will, who sent all before that

  bool loses_bytes() const { return !closed || out.sum || in || header_received > 0; }
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
  auto request = std::make_shared<MeshRequest>();
  request->bytes = data.size();
  request->finished = std::move(finished);
  std::shared_future<void> done = request->promise.get_future().share();
  if (data.empty()) {
    request->promise.set_value();
    return done;
  }
  request->direct = members_.size() == 2 || data.size() <= kDirectBytes;
  const std::size_t to_one = request->direct ? data.size() : data.size() / members_.ranks.size();
  const std::size_t parts = std::max<std::size_t>(1, to_one / kPartBytes);
  request->left = parts;
  {
    std::scoped_lock lock(mutex_);
    if (!failure_.empty()) throw std::runtime_error(failure_);
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t begin = mesh_bound(data.size(), part, parts);
      const std::size_t end = mesh_bound(data.size(), part + 1, parts);
      added_.push_back(
          std::make_shared<MeshSum>(next_++, data.subspan(begin, end - begin), summation, request));
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
      const bool sends = link.out.sum || !waiting_[link.member].empty();
      const auto events = static_cast<short>((link.early ? 0 : POLLIN) | (sends ? POLLOUT : 0));
      // A link from which nothing is wanted must not wake this thread when it closes.
      wanted[i] = {events == 0 || !link.broken.empty() ? -1 : link.socket, events, 0};
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
      look_at_links();
      look_at_clock();
    } catch (const std::exception& error) {
      std::scoped_lock lock(mutex_);
      if (failure_.empty()) failure_ = error.what();
    }
  }
}

// Makes all running sums throw and closes the connections to the others.
void Mesh::fail(const std::string& why) {
  std::vector<std::shared_ptr<MeshSum>> all(running_.begin(), running_.end());
  {
    std::scoped_lock lock(mutex_);
    all.insert(all.end(), added_.begin(), added_.end());
    added_.clear();
  }
  running_.clear();
  progressed_.clear();
  for (const auto& sum : all) {
    MeshRequest& request = sum->request();
    if (std::exchange(request.left, 0) == 0) continue;
    request.promise.set_exception(std::make_exception_ptr(std::runtime_error(why)));
  }
  for (Link& link : links_) {
    link.out = {};
    link.in.reset();
    shutdown(link.socket, SHUT_RDWR);
  }
  for (std::deque<Message>& messages : waiting_) messages.clear();
}

void Mesh::begin_added() {
  std::vector<std::shared_ptr<MeshSum>> added;
  {
    std::scoped_lock lock(mutex_);
    added = std::exchange(added_, {});
  }
  for (const std::shared_ptr<MeshSum>& sum : added) begin(sum);
  if (added.empty()) return;
  for (Link& link : links_) {
    link.early = false;
    send_some(link);
  }
}

void Mesh::begin(const std::shared_ptr<MeshSum>& sum) {
  if (spare_.empty()) spare_.push_back(std::make_unique<MeshSum::Buffer>());
  sum->lay_out(members_.me, members_.size(), std::move(spare_.back()));
  spare_.pop_back();
  running_.push_back(sum);
  send_to_all(sum, MeshPhase::kAddends);
}

// Puts the sum's bytes of this phase before those of later sums.
void Mesh::send_to_all(const std::shared_ptr<MeshSum>& sum, MeshPhase phase) {
  for (int member = 0; member < members_.size(); ++member) {
    if (member == members_.me) continue;
    std::deque<Message>& waiting = waiting_[member];
    auto later = std::upper_bound(
        waiting.begin(), waiting.end(), sum->number(),
        [](uint64_t number, const Message& other) { return number < other.sum->number(); });
    waiting.insert(later, {sum, phase});
  }
}

// `result`: what the system call returned that moved nothing.
void Mesh::note_broken(Link& link, ssize_t result) const {
  if (result < 0 && (errno == EAGAIN || errno == EINTR)) return;  // another time
  link.closed = result == 0;
  link.broken = fmt::format("the connection to rank {} broke: {}", members_.ranks[link.member],
                            link.closed ? "closed by that rank" : std::strerror(errno));
}

// Throws for a connection that broke, but not before what had come through it and others is used: a
// member that fails in a later sum has sent all of the earlier ones, which end well.
void Mesh::look_at_links() const {
  for (const Link& link : links_) {
    if (link.broken.empty()) continue;
    const bool last = std::ranges::none_of(links_, [&](const Link& other) {
      return other.member == link.member && other.broken.empty();
    });
    const bool missed = std::ranges::any_of(
        running_, [&](const auto& sum) { return !sum->is_done_with(link.member); });
    if (link.loses_bytes() || (last && missed)) throw std::runtime_error(link.broken);
  }
}

// Sends as much as the connection takes. Connections that take more, because they come first or are
// faster, so carry more of what waits.
void Mesh::send_some(Link& link) {
  std::deque<Message>& waiting = waiting_[link.member];
  while (link.broken.empty()) {
    if (!link.out.sum) {
      if (waiting.empty()) return;
      link.out = std::move(waiting.front());
      waiting.pop_front();
    }
    Message& m = link.out;
    const std::span<const std::byte> all = m.sum->outgoing(m.phase, link.member);
    std::size_t& sent = m.sum->sent(m.phase, link.member);
    const std::span<const std::byte> body = all.subspan(sent);
    const Header header{m.sum->number(), m.phase, static_cast<uint32_t>(m.sum->element_bytes()),
                        m.sum->request().bytes};
    const auto head = std::as_bytes(std::span(&header, 1)).subspan(m.header_sent);
    iovec parts[2] = {{const_cast<std::byte*>(head.data()), head.size()},
                      {const_cast<std::byte*>(body.data()), body.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t result = sendmsg(link.socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (result < 0) {
      note_broken(link, result);
      return;
    }
    const auto n = static_cast<std::size_t>(result);
    m.header_sent += std::min(n, head.size());
    sent += n - std::min(n, head.size());
    note_progress(m.sum);
    if (m.header_sent < sizeof header || sent < all.size()) return;
    link.out = {};
  }
}

// Returns false when the header is incomplete, or of a sum that this member has not begun.
bool Mesh::receive_header(Link& link) {
  Header& h = link.header;
  if (link.header_received < sizeof h) {
    auto* to = reinterpret_cast<std::byte*>(&h) + link.header_received;
    ssize_t n = recv(link.socket, to, sizeof h - link.header_received, MSG_DONTWAIT);
    if (n <= 0) {
      note_broken(link, n);
      return false;
    }
    link.header_received += static_cast<std::size_t>(n);
    if (link.header_received < sizeof h) return false;
  }
  const auto found = place_of(h.sum);
  link.early = found == running_.end() || (*found)->number() != h.sum;
  if (link.early) return false;
  const MeshSum& s = **found;
  const bool known =
      h.phase == MeshPhase::kAddends || (h.phase == MeshPhase::kResult && !s.direct());
  if (!known || h.bytes != s.request().bytes || h.element_bytes != s.element_bytes()) {
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
    const std::span<std::byte> all = link.in->incoming(link.header.phase, link.member);
    std::size_t& received = link.in->received(link.header.phase, link.member);
    if (received < all.size()) {
      const std::size_t wanted = std::min(all.size() - received, most);
      const ssize_t n = recv(link.socket, all.data() + received, wanted, MSG_DONTWAIT);
      if (n <= 0) {
        note_broken(link, n);
        return;
      }
      received += static_cast<std::size_t>(n);
      most -= static_cast<std::size_t>(n);
    }
    note_progress(link.in);
    if (received < all.size()) continue;
    link.in.reset();
    link.header_received = 0;
  }
}

// Returns the running sum of this number, or the first one behind it.
std::deque<std::shared_ptr<MeshSum>>::iterator Mesh::place_of(uint64_t number) {
  return std::lower_bound(running_.begin(), running_.end(), number,
                          [](const auto& sum, uint64_t wanted) { return sum->number() < wanted; });
}

void Mesh::note_progress(const std::shared_ptr<MeshSum>& sum) {
  if (!std::exchange(sum->progressed, true)) progressed_.push_back(sum);
}

// Looks at the sums of which bytes were sent or received: large models have thousands of others.
void Mesh::advance_progressed() {
  while (!progressed_.empty()) {  // results that are sent at once are progress too
    for (const std::shared_ptr<MeshSum>& sum : std::exchange(progressed_, {})) {
      sum->progressed = false;
      if (sum->add_up() && !sum->direct()) {
        send_to_all(sum, MeshPhase::kResult);
        for (Link& link : links_) send_some(link);
      }
      const auto place = place_of(sum->number());
      const bool running = place != running_.end() && *place == sum;
      if (!running || !sum->is_done()) continue;
      running_.erase(place);
      spare_.push_back(sum->take_buffer());
      tell_finished(*sum);
    }
  }
}

void Mesh::tell_finished(const MeshSum& sum) {
  if (MovedBytes* moved = moved_) {
    moved->add(static_cast<int64_t>(sum.sent_bytes()), static_cast<int64_t>(sum.received_bytes()));
  }
  MeshRequest& request = sum.request();
  if (--request.left > 0) return;
  if (request.finished) request.finished();
  request.promise.set_value();
}

void Mesh::look_at_clock() {
  if (running_.empty()) return;
  const MeshSum& s = *running_.front();
  const std::chrono::nanoseconds limit = timeout_;
  if (Clock::now() - s.started() < limit) return;
  throw std::runtime_error(
      fmt::format("rank {} timed out after {:g} s waiting for rank {}", members_.ranks[members_.me],
                  std::chrono::duration<double>(limit).count(), members_.ranks[s.late_member()]));
}

}  // namespace lockstep
