#include "launch/local_launcher.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "launch/rank_process.h"
#include "launch/signal_queue.h"
#include "launch/warden.h"

namespace lockstep {

namespace {

using std::chrono::milliseconds;

// After a rank that only lost a peer, the time to learn of the one that caused it before the others
// are told to stop, which would hide it.
constexpr milliseconds kSettle{500};
// After the last rank has ended, the time for output from processes that left its process group.
constexpr milliseconds kLastOutput{1000};

struct StoreSocket {
  Descriptor descriptor;
  int port = 0;
};

// Bound and listening before any rank exists, and handed to rank 0: nobody can take the port, and
// the other ranks can connect before rank 0 is ready.
StoreSocket open_store_socket() {
  StoreSocket store;
  store.descriptor = Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* where = reinterpret_cast<sockaddr*>(&address);
  if (!store.descriptor.open() || ::bind(store.descriptor.get(), where, size) != 0 ||
      ::listen(store.descriptor.get(), SOMAXCONN) != 0 ||
      ::getsockname(store.descriptor.get(), where, &size) != 0) {
    throw MachineError("cannot listen on 127.0.0.1: {}", std::strerror(errno));
  }
  store.port = ntohs(address.sin_port);
  return store;
}

struct Rank {
  RankProcess process;
  bool running = false;
};

class Watch {
 public:
  explicit Watch(const LocalLaunch& launch)
      : launch_(launch),
        warden_(launch.ranks),
        signals_({SIGCHLD, SIGINT, SIGTERM, SIGHUP}),
        output_(launch.ranks, launch.output),
        ranks_(launch.ranks) {}
  ~Watch();  // only after an exception is anything left to kill
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void start();
  LaunchOutcome run();

 private:
  RankCommand command_of(int rank, StoreSocket& store, const std::string& run_id) const;
  void wait_for_events();
  void read_output(int rank, Stream stream);
  void take_signals();
  void collect_ends();
  void collect(int rank, int status);
  void interrupt(int signal);
  void check_deadlines();
  void stop_all();
  void kill_all();
  bool any_running() const;
  bool any_output() const;
  int milliseconds_to_wait() const;
  LaunchOutcome outcome() const;

  LocalLaunch launch_;
  Warden warden_;  // first: it must inherit nothing of the rest
  SignalQueue signals_;
  RankOutput output_;
  std::vector<Rank> ranks_;
  std::vector<RankEnd> ends_;
  Clock::time_point started_ = Clock::now();
  int interrupted_by_ = 0;
  bool stopping_ = false, killed_ = false;
  std::optional<Clock::time_point> settle_until_, kill_at_, drain_until_;
};

Watch::~Watch() {
  for (Rank& rank : ranks_) {
    if (!rank.running) continue;
    ::kill(-rank.process.pid, SIGKILL);
    warden_.forget(rank.process.pid);
    ::waitpid(rank.process.pid, nullptr, 0);
  }
}

RankCommand Watch::command_of(int rank, StoreSocket& store, const std::string& run_id) const {
  std::vector<int> cores = usable_cores();
  int share = std::max<int>(1, static_cast<int>(cores.size()) / launch_.ranks);
  RankPlace place{.rank = rank, .size = launch_.ranks, .master_port = store.port};
  place.store_descriptor = rank == 0 ? store.descriptor.get() : -1;
  place.threads = share;
  place.run_id = run_id;
  RankCommand command;
  command.words = launch_.command;
  command.environment = environment_of_rank(place);
  command.inherited = place.store_descriptor;
  if (launch_.pin) {
    command.cores.assign(cores.begin() + rank * share, cores.begin() + (rank + 1) * share);
  }
  for (Stream stream : {kStandardOutput, kStandardError}) {
    command.terminal[stream] = rank == 0 && output_.on_terminal(stream);
  }
  return command;
}

void Watch::start() {
  StoreSocket store = open_store_socket();  // our copy ends here: the store dies with rank 0
  std::string run_id =
      fmt::format("{:x}-{}", std::chrono::system_clock::now().time_since_epoch().count(), getpid());
  for (int i = 0; i < launch_.ranks; ++i) {
    Rank& rank = ranks_[i];
    rank.process = start_rank(command_of(i, store, run_id), warden_);
    rank.running = true;
  }
}

LaunchOutcome Watch::run() {
  while (any_running() || any_output()) {
    wait_for_events();
    take_signals();
    check_deadlines();
    if (any_running()) continue;
    if (!drain_until_) drain_until_ = Clock::now() + kLastOutput;
    if (Clock::now() >= *drain_until_) break;
  }
  return outcome();
}

bool Watch::any_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.running; });
}

bool Watch::any_output() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) {
    return r.process.output[0].open() || r.process.output[1].open();
  });
}

int Watch::milliseconds_to_wait() const {
  std::optional<Clock::time_point> next;
  for (const auto& deadline : {settle_until_, kill_at_, drain_until_}) {
    if (deadline && (!next || *deadline < *next)) next = deadline;
  }
  if (!next) return -1;
  auto left = std::chrono::ceil<milliseconds>(*next - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

void Watch::wait_for_events() {
  std::vector<pollfd> waits = {{signals_.descriptor(), POLLIN, 0}};
  std::vector<std::pair<int, Stream>> sources;
  for (int i = 0; i < launch_.ranks; ++i) {
    for (Stream stream : {kStandardOutput, kStandardError}) {
      if (!ranks_[i].process.output[stream].open()) continue;
      waits.push_back({ranks_[i].process.output[stream].get(), POLLIN, 0});
      sources.emplace_back(i, stream);
    }
  }
  if (::poll(waits.data(), waits.size(), milliseconds_to_wait()) <= 0) return;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (waits[i + 1].revents != 0) read_output(sources[i].first, sources[i].second);
  }
}

void Watch::read_output(int rank, Stream stream) {
  char bytes[65536];
  Descriptor& source = ranks_[rank].process.output[stream];
  ssize_t size = ::read(source.get(), bytes, sizeof bytes);
  if (size > 0) {
    output_.take(rank, stream, {bytes, static_cast<std::size_t>(size)});
  } else if (size == 0 || errno != EINTR) {  // a terminal ends with EIO
    output_.end(rank, stream);
    source.close();
  }
}

void Watch::take_signals() {
  bool ended = false;
  while (int signal = signals_.next()) {
    if (signal == SIGCHLD) {
      ended = true;
    } else {
      interrupt(signal);
    }
  }
  if (ended) collect_ends();
}

// Children that a rank left behind go with it. The group is killed before its leader is reaped, so
// that its number cannot have been given to somebody else.
void Watch::collect_ends() {
  for (int i = 0; i < launch_.ranks; ++i) {
    Rank& rank = ranks_[i];
    if (!rank.running) continue;
    siginfo_t info{};
    auto id = static_cast<id_t>(rank.process.pid);
    if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0) continue;
    if (info.si_pid != rank.process.pid) continue;
    ::kill(-rank.process.pid, SIGKILL);
    warden_.forget(rank.process.pid);
    int status = 0;
    ::waitpid(rank.process.pid, &status, 0);
    collect(i, status);
  }
}

void Watch::collect(int rank, int status) {
  ranks_[rank].running = false;
  RankEnd end{.rank = rank, .status = status, .time = Clock::now(), .told_to_stop = stopping_};
  ends_.push_back(end);
  if (status == 0 || stopping_) return;
  if (may_be_consequence(end)) {
    if (!settle_until_) settle_until_ = end.time + kSettle;
    return;
  }
  stop_all();
}

void Watch::interrupt(int signal) {
  if (stopping_ && signal == SIGINT && interrupted_by_ != 0) {
    kill_all();
    return;
  }
  if (interrupted_by_ == 0 && !first_failure(ends_)) interrupted_by_ = signal;
  if (stopping_) return;
  output_.note(fmt::format("lockstep launch: {}: stopping {} ({} to finish; Ctrl-C again kills)",
                           signal_name(signal), launch_.ranks == 1 ? "the rank" : "all ranks",
                           short_duration(static_cast<double>(launch_.grace.count()) / 1000)));
  stop_all();
}

void Watch::check_deadlines() {
  Clock::time_point now = Clock::now();
  if (settle_until_ && now >= *settle_until_ && !stopping_) stop_all();
  if (kill_at_ && now >= *kill_at_ && !killed_) kill_all();
}

void Watch::stop_all() {
  settle_until_.reset();
  stopping_ = true;
  if (!any_running()) return;
  std::optional<RankEnd> failure = first_failure(ends_);
  if (failure && interrupted_by_ == 0) {
    output_.note(fmt::format("lockstep launch: rank {} {}; stopping the others", failure->rank,
                             describe_end(*failure)));
  }
  kill_at_ = Clock::now() + launch_.grace;
  for (const Rank& rank : ranks_) {
    if (rank.running) ::kill(-rank.process.pid, SIGTERM);
  }
}

void Watch::kill_all() {
  killed_ = true;
  kill_at_.reset();
  for (int i = 0; i < launch_.ranks; ++i) {
    if (!ranks_[i].running) continue;
    output_.note(fmt::format("lockstep launch: rank {} did not stop in time: killed", i));
    ::kill(-ranks_[i].process.pid, SIGKILL);
  }
}

LaunchOutcome Watch::outcome() const {
  LaunchOutcome out;
  out.interrupted_by = interrupted_by_;
  if (interrupted_by_ != 0) {
    out.exit_code = 128 + interrupted_by_;
    out.message = fmt::format("stopped by {}", signal_name(interrupted_by_));
    return out;
  }
  out.failure = first_failure(ends_);
  if (!out.failure) return out;
  const RankEnd& end = *out.failure;
  double seconds = std::chrono::duration<double>(end.time - started_).count();
  out.exit_code = exit_code_for(end);
  out.message = fmt::format("rank {} of {} {} after {:.1f} s", end.rank, launch_.ranks,
                            describe_end(end), seconds);
  const auto& lines = output_.last_lines(end.rank);
  if (!lines.empty()) out.message += "; its last lines:";
  for (const std::string& line : lines) out.message += "\n    | " + line;
  out.advice = advice_for(end);
  return out;
}

}  // namespace

LaunchOutcome launch_local(const LocalLaunch& launch) {
  if (launch.ranks < 1 || launch.ranks > kMostLocalRanks) {
    throw ConfigError("{} ranks: expected a number from 1 to {}", launch.ranks, kMostLocalRanks);
  }
  if (launch.command.empty()) throw ConfigError("no command to launch");
  std::size_t cores = usable_cores().size();
  if (launch.pin && static_cast<std::size_t>(launch.ranks) > cores) {
    throw ConfigError("{} ranks cannot be pinned to {} cores", launch.ranks, cores);
  }
  LocalLaunch found = launch;
  found.command[0] = find_program(launch.command[0]);
  Watch watch(found);
  watch.start();
  return watch.run();
}

}  // namespace lockstep
