#include "netlab/switch.h"

#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <mutex>
#include <queue>
#include <random>
#include <thread>

#include "base/error.h"
#include "netlab/frame.h"
#include "netlab/tap.h"

namespace lockstep {

namespace {

using Nanoseconds = int64_t;
constexpr Nanoseconds kMillisecond = 1000000;
constexpr Nanoseconds kNear = 20000;  // what is due this soon is done at once, saving a wake-up
constexpr int kFramesInTurn = 64;     // from one port, before the other ports and the clock
constexpr double kPacketOnWire = 1538;

Nanoseconds now() {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

// Returns how long `bytes` keep a line of `rate_mbit` busy; 0 without a limit.
Nanoseconds time_on_wire(uint64_t bytes, double rate_mbit) {
  return rate_mbit <= 0 ? 0
                        : static_cast<Nanoseconds>(static_cast<double>(bytes) * 8000 / rate_mbit);
}

// Models one direction of a port's line.
struct Line {
  Nanoseconds free_at = 0;  // when the last bit of all earlier frames has passed

  // Returns when the last bit passes of a frame that arrives at `at`; -1 when too much is waiting.
  Nanoseconds pass(Nanoseconds at, uint64_t bytes, double rate_mbit, double queue_ms) {
    if (rate_mbit <= 0) return at;
    double longest = std::max(queue_ms * 1e6, 16 * kPacketOnWire * 8000 / rate_mbit);
    if (static_cast<double>(free_at - at) > longest) return -1;
    return free_at = std::max(at, free_at) + time_on_wire(bytes, rate_mbit);
  }
};

struct Port {
  Descriptor tap;
  double rate_mbit = 0;
  Line up, down;
  int pending = 0;  // frames that wait for the line to this port
  bool large = true;
  PortCounts counts;
};

struct PathState {
  SwitchPath settings;
  Nanoseconds last_due = 0;
  int pending = 0;
};

}  // namespace

int largest_frame_at(double rate_mbit) {
  constexpr int kLargest = 65536, kSmallest = 4096;
  if (rate_mbit <= 0) return kLargest;
  return std::clamp(static_cast<int>(rate_mbit * 1e6 / 8 * 1e-3), kSmallest, kLargest);
}

class Switch::Engine {
 public:
  explicit Engine(const SwitchOptions& options);
  ~Engine();
  void on_thread(const std::function<void()>& work);

  Port& port(int p) { return ports_.at(static_cast<std::size_t>(p)); }
  PathState& path(int from, int to) {
    return paths_.at(static_cast<std::size_t>(from) * static_cast<std::size_t>(options_.ports) +
                     static_cast<std::size_t>(to));
  }
  void attach(int p, Descriptor tap);
  void choose_frames(int p);

 private:
  struct Event {
    Nanoseconds due;
    uint64_t order;
    EthernetFrame* frame;
    int16_t from, to;
    bool arrived;  // at the receiver's line; else still on its way
    bool operator<(const Event& other) const {
      return due != other.due ? due > other.due : order > other.order;
    }
  };

  void run();
  void do_work();
  void read_port(int p);
  void send(int from, EthernetFrame* frame);
  void travel(int from, int to, EthernetFrame* frame, Nanoseconds at);
  void arrive(int from, int to, EthernetFrame* frame, Nanoseconds at);
  void deliver(int to, EthernetFrame* frame);
  void do_due();
  void set_timer();
  void drop(EthernetFrame* frame, uint64_t& counter) {
    ++counter;
    pool_.put_back(frame);
  }
  Nanoseconds draw_delay(const SwitchPath& path);
  void later(Event event) {
    event.order = next_order_++;
    events_.push(event);
  }

  SwitchOptions options_;
  std::vector<Port> ports_;
  std::vector<PathState> paths_;
  Descriptor poll_, timer_, wake_;
  std::priority_queue<Event> events_;
  uint64_t next_order_ = 0;
  Nanoseconds armed_ = 0;
  FramePool pool_;
  std::mt19937_64 random_;
  std::mutex work_mutex_;
  std::vector<std::packaged_task<void()>> work_;
  bool stop_ = false;
  std::thread thread_;
};

Switch::Engine::Engine(const SwitchOptions& options)
    : options_(options),
      ports_(static_cast<std::size_t>(options.ports)),
      paths_(static_cast<std::size_t>(options.ports * options.ports)),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      random_(options.seed) {
  if (!poll_.open() || !timer_.open() || !wake_.open()) {
    throw MachineError("cannot start a virtual switch: {}", std::strerror(errno));
  }
  epoll_event event{.events = EPOLLIN, .data = {.u64 = ports_.size()}};
  ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, timer_.get(), &event);
  event.data.u64 = ports_.size() + 1;
  ::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  thread_ = std::thread([this] { run(); });
}

Switch::Engine::~Engine() {
  on_thread([this] { stop_ = true; });
  thread_.join();
}

void Switch::Engine::on_thread(const std::function<void()>& work) {
  std::packaged_task<void()> task(work);
  std::future<void> done = task.get_future();
  {
    std::lock_guard lock(work_mutex_);
    work_.push_back(std::move(task));
  }
  uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
  done.get();
}

void Switch::Engine::do_work() {
  uint64_t count;
  (void)!::read(wake_.get(), &count, sizeof count);
  std::vector<std::packaged_task<void()>> work;
  {
    std::lock_guard lock(work_mutex_);
    work.swap(work_);
  }
  for (auto& task : work) task();
}

void Switch::Engine::attach(int p, Descriptor tap) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = static_cast<uint64_t>(p)}};
  if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, tap.get(), &event) != 0) {
    throw MachineError("cannot watch a TAP interface: {}", std::strerror(errno));
  }
  port(p).tap = std::move(tap);
  port(p).large = false;
  set_large_frames(port(p).tap.get(), false);
  choose_frames(p);
}

// Loss applies to packets: on ports with a lossy path, the kernel sends every packet separately.
void Switch::Engine::choose_frames(int p) {
  bool large = true;
  for (int to = 0; to < options_.ports; ++to) large &= path(p, to).settings.loss == 0;
  if (large == port(p).large || !port(p).tap.open()) return;
  set_large_frames(port(p).tap.get(), large);
  port(p).large = large;
}

void Switch::Engine::run() {
  ::prctl(PR_SET_NAME, "netlab-switch");
  // The network must not wait for processors that the hosts keep busy.
  sched_param priority{.sched_priority = 1};
  if (::pthread_setschedparam(::pthread_self(), SCHED_RR, &priority) != 0) {
    ::prctl(PR_SET_TIMERSLACK, 1UL);
  }
  std::vector<epoll_event> ready(ports_.size() + 2);
  while (!stop_) {
    int count = ::epoll_wait(poll_.get(), ready.data(), static_cast<int>(ready.size()), -1);
    do_due();
    for (int i = 0; i < count; ++i) {
      auto source = ready[static_cast<std::size_t>(i)].data.u64;
      if (source < ports_.size()) read_port(static_cast<int>(source));
      if (source == ports_.size()) {
        uint64_t expirations;
        (void)!::read(timer_.get(), &expirations, sizeof expirations);
        armed_ = 0;
      }
      if (source == ports_.size() + 1) do_work();
    }
    do_due();
    set_timer();
  }
}

void Switch::Engine::read_port(int p) {
  Port& from = port(p);
  for (int i = 0; i < kFramesInTurn; ++i) {
    EthernetFrame* frame = pool_.take(kLargestFrame);
    ssize_t size = ::read(from.tap.get(), frame->data.get(), frame->capacity);
    if (size < static_cast<ssize_t>(sizeof(FrameHeader) + 14)) {
      pool_.put_back(frame);
      bool nothing = size >= 0 || errno == EAGAIN || errno == EINTR;
      if (!nothing) from.tap.close();  // the interface was removed
      return;
    }
    frame->size = static_cast<uint32_t>(size);
    send(p, frame);
  }
}

void Switch::Engine::send(int from, EthernetFrame* frame) {
  Port& port = this->port(from);
  uint64_t bytes = wire_bytes(*frame);
  ++port.counts.frames_in;
  port.counts.bytes_in += bytes;
  Nanoseconds sent = port.up.pass(now(), bytes, port.rate_mbit, options_.queue_ms);
  if (sent < 0 || pool_.bytes_in_use() > options_.most_bytes) {
    return drop(frame, port.counts.overrun);
  }
  bool all = is_for_all(*frame);
  int to = static_cast<int>(receiver_of(*frame)) - 1;
  if (!all && (to < 0 || to >= options_.ports || to == from)) {
    pool_.put_back(frame);
    return;
  }
  if (!all) return travel(from, to, frame, sent);
  for (int other = 0; other < options_.ports; ++other) {
    if (other == from) continue;
    ++frame->users;
    travel(from, other, frame, sent);
  }
  pool_.put_back(frame);
}

Nanoseconds Switch::Engine::draw_delay(const SwitchPath& path) {
  double delay_ms = path.delay_ms;
  if (path.jitter_ms > 0) {
    delay_ms += std::uniform_real_distribution<>(-path.jitter_ms, path.jitter_ms)(random_);
  }
  return static_cast<Nanoseconds>(std::max(0.0, delay_ms) * kMillisecond);
}

void Switch::Engine::travel(int from, int to, EthernetFrame* frame, Nanoseconds at) {
  PathState& path = this->path(from, to);
  if (path.settings.cut) return drop(frame, port(from).counts.cut);
  if (path.settings.loss > 0 && std::uniform_real_distribution<>()(random_) < path.settings.loss) {
    return drop(frame, port(from).counts.lost);
  }
  Nanoseconds due = std::max(path.last_due, at + draw_delay(path.settings));
  path.last_due = due;
  if (path.pending == 0 && due <= now() + kNear) {
    arrive(from, to, frame, due);
    return;
  }
  ++path.pending;
  if (frame->users == 1) frame = pool_.fit(frame);
  later({due, 0, frame, static_cast<int16_t>(from), static_cast<int16_t>(to), false});
}

void Switch::Engine::arrive(int from, int to, EthernetFrame* frame, Nanoseconds at) {
  Port& port = this->port(to);
  if (path(from, to).settings.cut) return drop(frame, this->port(from).counts.cut);
  uint64_t bytes = wire_bytes(*frame);
  // Its bits arrived one after the other, and kept the line busy meanwhile.
  Nanoseconds first_bit = at - time_on_wire(bytes, port.rate_mbit);
  Nanoseconds done = port.down.pass(first_bit, bytes, port.rate_mbit, options_.queue_ms);
  if (done < 0) return drop(frame, this->port(from).counts.overrun);
  if (port.pending == 0 && done <= now() + kNear) {
    deliver(to, frame);
    return;
  }
  ++port.pending;
  later({done, 0, frame, static_cast<int16_t>(from), static_cast<int16_t>(to), true});
}

void Switch::Engine::deliver(int to, EthernetFrame* frame) {
  Port& port = this->port(to);
  if (port.tap.open()) {
    // A host whose interface is down receives nothing: the frame is lost, as on a wire.
    (void)!::write(port.tap.get(), frame->data.get(), frame->size);
    ++port.counts.frames_out;
    port.counts.bytes_out += wire_bytes(*frame);
  }
  pool_.put_back(frame);
}

void Switch::Engine::do_due() {
  while (!events_.empty() && events_.top().due <= now() + kNear) {
    Event event = events_.top();
    events_.pop();
    if (event.arrived) {
      --port(event.to).pending;
      deliver(event.to, event.frame);
    } else {
      --path(event.from, event.to).pending;
      arrive(event.from, event.to, event.frame, event.due);
    }
  }
}

void Switch::Engine::set_timer() {
  if (events_.empty()) return;
  Nanoseconds due = events_.top().due;
  if (due == armed_) return;
  armed_ = due;
  itimerspec time{};
  time.it_value.tv_sec = due / 1000000000;
  time.it_value.tv_nsec = due % 1000000000;
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &time, nullptr);
}

Switch::Switch(const SwitchOptions& options) : engine_(std::make_unique<Engine>(options)) {}

Switch::~Switch() = default;

void Switch::attach(int port, Descriptor tap) {
  auto shared = std::make_shared<Descriptor>(std::move(tap));
  engine_->on_thread([this, port, shared] { engine_->attach(port, std::move(*shared)); });
}

void Switch::detach(int port) {
  engine_->on_thread([this, port] { engine_->port(port).tap.close(); });
}

SwitchPath Switch::path(int from, int to) {
  SwitchPath out;
  engine_->on_thread([&] { out = engine_->path(from, to).settings; });
  return out;
}

void Switch::set_path(int from, int to, const SwitchPath& path) {
  engine_->on_thread([&] {
    engine_->path(from, to).settings = path;
    engine_->choose_frames(from);
  });
}

double Switch::rate_mbit(int port) {
  double out = 0;
  engine_->on_thread([&] { out = engine_->port(port).rate_mbit; });
  return out;
}

void Switch::set_rate(int port, double mbit) {
  engine_->on_thread([&] { engine_->port(port).rate_mbit = mbit; });
}

PortCounts Switch::counts(int port) {
  PortCounts out;
  engine_->on_thread([&] { out = engine_->port(port).counts; });
  return out;
}

}  // namespace lockstep
