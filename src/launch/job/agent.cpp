#include "launch/job/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "dist/rank/machine_key.h"
#include "dist/rank/network.h"
#include "launch/ending/power_watch.h"
#include "launch/ending/run_copies.h"
#include "launch/hosts/host_address.h"
#include "launch/job/channel.h"
#include "launch/jobs/job_record.h"
#include "launch/processes/child_process.h"
#include "launch/processes/signal_queue.h"
#include "train/folder/run_folder.h"

namespace lockstep {

namespace {

// Ranks must wait with their output when the launcher has not taken more than this yet.
constexpr std::size_t kMostUnsent = 1u << 20;

// Only frames may use these two descriptors: anything else that is printed goes to standard error.
Descriptor take_descriptor(int number, int flags) {
  Descriptor taken(::fcntl(number, F_DUPFD_CLOEXEC, 3));
  Descriptor nothing(::open("/dev/null", flags | O_CLOEXEC));
  ::dup2(number == 1 ? 2 : nothing.get(), number);
  return taken;
}

// Ends an older agent of the same job on this machine, and with it its ranks.
void end_process(const ProcessId& process) {
  constexpr int kTries = 100;
  constexpr std::chrono::milliseconds kPause{10};
  for (int i = 0; i < kTries; ++i) {
    // A signal to 0 or -1 goes to many.
    if (process.pid <= 1 || start_time_of(process.pid) != process.started) break;
    if (i == 0) ::kill(process.pid, SIGKILL);
    std::this_thread::sleep_for(kPause);
  }
}

class Agent : RankEvents {
 public:
  explicit Agent(const AgentOptions& options)
      : options_(options),
        ranks_(loop_, *this, 0),  // first, as its orphan killer must inherit nothing of the rest
        signals_({SIGCHLD, SIGINT, SIGTERM, SIGHUP}),
        channel_(loop_, take_descriptor(0, O_RDONLY), take_descriptor(1, O_WRONLY)),
        notices_(loop_, options.spot,
                 {.on_notice = [this](const HostNotice& n) { channel_.send(kNotice, encode(n)); },
                  .on_words = [](const std::string& w) { fmt::print(stderr, "{}\n", w); }}) {}

  int run();

 private:
  void say_hello();
  void obey(const Frame& frame);
  void obey_safely(const Frame& frame);
  Prepared prepare(const PrepareOrder& order);
  void start(std::string_view payload);
  void take_signals();
  void leave(const std::string& why);
  void check_time();

  void on_output(int rank, Stream stream, std::string_view bytes) override;
  void on_output_end(int rank, Stream stream) override;
  void on_report(int rank, const std::string& line) override;
  void on_rank_end(int rank, int status, bool told) override;
  void on_rank_killed(int rank) override;
  void on_idle(int host) override;

  AgentOptions options_;
  EventLoop loop_;
  RankSet ranks_;
  SignalQueue signals_;
  Channel channel_;
  NoticeWatch notices_;
  Descriptor store_;
  PowerWatch power_;
  std::chrono::milliseconds grace_{0};  // of the current attempt
  Clock::time_point next_beat_ = Clock::now(), next_day_ = next_beat_;
  bool leaving_ = false;
};

void Agent::say_hello() {
  channel_.begin();
  AgentHello hello{.version = LOCKSTEP_VERSION, .libtorch = libtorch_version()};
  hello.machine = machine_key();
  hello.ssh_address = own_ssh_address();
  hello.addresses = own_addresses();
  hello.cores = usable_threads();
  hello.gpus = count_gpus();
  hello.process = {::getpid(), start_time_of(::getpid())};
  channel_.send(kHello, encode(hello));
}

int Agent::run() {
  ::prctl(PR_SET_NAME, "lockstep-agent");
  ::signal(SIGPIPE, SIG_IGN);  // writing tells when the channel has ended
  if (options_.replaces) end_process(*options_.replaces);
  loop_.watch(signals_.descriptor(), POLLIN, [this] { take_signals(); });
  channel_.listen([this](const Frame& frame) { obey_safely(frame); },
                  [this](const std::string& why) { leave(why); });
  say_hello();
  while (!leaving_ || !ranks_.idle()) {
    std::optional<Clock::time_point> until = ranks_.next_deadline();
    if (!leaving_) until = earlier(until, earlier(notices_.next_deadline(), next_beat_));
    loop_.wait(until);
    check_time();
    ranks_.pause_output(!leaving_ && channel_.waiting() > kMostUnsent);
  }
  return kExitOk;
}

// Reads before it gives up: after this process was paused (SIGSTOP), heartbeats are waiting unread.
void Agent::check_time() {
  Clock::time_point now = Clock::now();
  ranks_.check_time(now);
  notices_.watch(!leaving_ && !ranks_.idle());
  notices_.check_time(now);
  if (leaving_) return;
  if (options_.daily && now >= next_day_) {
    options_.daily();
    next_day_ = now + std::chrono::hours(24);
  }
  if (now >= next_beat_) {
    channel_.send(kBeat);
    next_beat_ = now + kBeatEvery;
  }
  if (now - channel_.last_heard() <= 2 * kBeatEvery) power_.heard();
  if (now - channel_.last_heard() > options_.silence) {
    loop_.wait(now);
    if (Clock::now() - channel_.last_heard() > options_.silence) leave("it says nothing any more");
  }
}

// Gives up the launcher, and stops the ranks.
void Agent::leave(const std::string& why) {
  if (leaving_) return;
  leaving_ = true;
  if (!why.empty()) fmt::print(stderr, "lockstep agent: left the launcher: {}\n", why);
  channel_.close();
  ranks_.pause_output(false);
  if (!ranks_.idle()) ranks_.stop(grace_);
}

void Agent::obey_safely(const Frame& frame) {
  try {
    obey(frame);
  } catch (const Error& error) {
    channel_.send(kError,
                  encode(RemoteFailure{.code = error.exit_code(), .text = error.describe()}));
  }
}

void Agent::obey(const Frame& frame) {
  switch (frame.kind) {
    case kPrepare:
      channel_.send(kPrepared, encode(prepare(decode<PrepareOrder>(frame.payload))));
      break;
    case kOpenStore:
      store_ = Descriptor(listen_on(std::string(frame.payload), 0));
      channel_.send(kStoreOpen, encode_number(port_of(store_.get())));
      break;
    case kStart:
      start(frame.payload);
      break;
    case kStop: {
      auto order = decode<StopOrder>(frame.payload);
      store_.close();
      ranks_.stop(std::chrono::milliseconds(order.grace_milliseconds), order.tell);
      break;
    }
    case kKill:
      ranks_.kill();
      break;
    case kAskCopies:
      channel_.send(kCopies, to_text(look_at_copies(in_home(std::string(frame.payload)))));
      break;
    case kPowerOff:
      power_.off_in(std::chrono::milliseconds(decode_number(frame.payload)));
      channel_.send(kDone);
      break;
    case kStandDown:
      power_.stand_down();
      channel_.send(kDone);
      break;
    default:  // a heartbeat, or a later launcher's message
      break;
  }
}

Prepared Agent::prepare(const PrepareOrder& order) {
  if (::chdir(in_home(order.folder).c_str()) != 0) {
    ConfigError error("the folder {} is not there: {}", order.folder, std::strerror(errno));
    error.set_advice("--push brings what the job needs, --cwd FOLDER names another");
    throw error;
  }
  if (!order.program.empty()) find_program(order.program);
  LocalAddress local;
  if (!order.interface.empty()) {
    local = address_of_interface(order.interface);
  } else if (!order.towards.empty()) {
    local = local_address_towards(order.towards);
  }
  if (local.loopback && !order.towards.empty() && order.interface.empty()) {
    throw ConfigError(
        "{} leads back to this machine, not to another host; give the hosts' private addresses",
        order.towards);
  }
  if (order.power.command.empty()) {
    PowerWatch::clear();
  } else {
    power_.arm(order.power);
  }
  return {local.address, local.interface};
}

void Agent::start(std::string_view payload) {
  auto order = decode<StartOrder>(payload);
  if (options_.admit) options_.admit(order);
  Descriptor store = std::move(store_);
  grace_ = std::chrono::milliseconds(order.grace_milliseconds);
  ranks_.start(order, std::move(store));
}

void Agent::take_signals() {
  bool ended = false;
  while (int signal = signals_.next()) {
    if (signal == SIGCHLD) {
      ended = true;
    } else if (signal == SIGHUP || leaving_) {
      leave("");
    } else {
      // The machine must stop (a spot machine is reclaimed): its ranks save, the launcher decides.
      channel_.send(kTold, encode_number(signal));
      if (!ranks_.idle()) ranks_.stop(grace_);
    }
  }
  if (ended) ranks_.collect_ends();
}

void Agent::on_output(int rank, Stream stream, std::string_view bytes) {
  channel_.send(kOutput, encode(RankBytes{rank, stream, bytes}));
}

void Agent::on_output_end(int rank, Stream stream) {
  channel_.send(kOutputEnd, encode(RankBytes{rank, stream, {}}));
}

void Agent::on_report(int rank, const std::string& line) {
  channel_.send(kReport, encode(RankBytes{rank, kStandardOutput, line}));
}

void Agent::on_rank_end(int rank, int status, bool told) {
  channel_.send(kRankEnd, encode(RankEndMessage{rank, status, told}));
}

void Agent::on_rank_killed(int rank) { channel_.send(kRankKilled, encode_number(rank)); }

void Agent::on_idle(int) { channel_.send(kIdle); }

}  // namespace

uint64_t start_time_of(int pid) {
  std::string stat;
  try {
    stat = read_file(fmt::format("/proc/{}/stat", pid));
  } catch (const Error&) {
    return 0;
  }
  // The second field is the name in parentheses, which may hold anything; the 22nd is the start.
  constexpr std::size_t kStartAfterName = 19;
  std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::vector<std::string_view> words = split_words(std::string_view(stat).substr(name_end + 1));
  if (words.size() <= kStartAfterName || words[0] == "Z") return 0;
  uint64_t ticks = 0;
  std::string_view text = words[kStartAfterName];
  std::from_chars(text.data(), text.data() + text.size(), ticks);
  return ticks;
}

int count_gpus() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr) {
    return *visible == '\0' ? 0 : static_cast<int>(split(visible, ',').size());
  }
  int count = 0;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev", failed)) {
    std::string name = entry.path().filename().string();
    count += name.starts_with("nvidia") && name.size() > 6 &&
             name.find_first_not_of("0123456789", 6) == std::string::npos;
  }
  return count;
}

int run_agent(const AgentOptions& options) { return Agent(options).run(); }

}  // namespace lockstep
