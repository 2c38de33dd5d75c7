// Controls one host through its agent: the process that carries the channel (ssh, or a shell on
// this machine), the messages, and how long the host may be silent.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "base/text.h"
#include "launch/job/channel.h"
#include "launch/job/host_control.h"
#include "launch/processes/child_process.h"
#include "train/folder/run_folder.h"

namespace lockstep {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kToSayHello{20000};  // more than ssh may take to connect
constexpr milliseconds kToEnd{1000};        // for ssh, once the channel is closed
constexpr std::size_t kKeptWords = 8192;    // bytes of ssh's output, for an error's cause

std::vector<std::string> agent_command(const AgentPlace& place) {
  std::vector<std::string> words = {"agent"};
  if (!place.words.empty()) {
    words.insert(words.end(), place.words.begin(), place.words.end());
    words.insert(words.end(), {"--host", place.host.name});
  }
  words.insert(
      words.end(),
      {"--silence", fmt::format("{:g}", std::chrono::duration<double>(place.silence).count())});
  if (place.spot.cloud != "auto") words.insert(words.end(), {"--spot", place.spot.cloud});
  if (!place.spot.metadata.empty()) {
    words.insert(words.end(), {"--metadata", place.spot.metadata});
  }
  if (place.replaces) {
    words.push_back("--replaces");
    words.push_back(fmt::format("{}:{}", place.replaces->pid, place.replaces->started));
  }
  RemoteOptions remote = place.remote;
  if (is_this_machine(place.host)) {
    remote.program = fs::read_symlink("/proc/self/exe").string();
    remote.door = false;
  }
  return host_command(place.host, remote, lockstep_text(remote, words));
}

class RemoteHost : public HostControl {
 public:
  RemoteHost(EventLoop& loop, HostEvents& events, const AgentPlace& place);
  ~RemoteHost() override;

  void prepare(const PrepareOrder& order) override {
    unprepared_ = true;
    channel_->send(kPrepare, encode(order));
  }
  void open_store(const std::string& address) override { channel_->send(kOpenStore, address); }
  void start(const StartOrder& order) override { channel_->send(kStart, encode(order)); }
  void stop(milliseconds grace, bool tell) override {
    channel_->send(kStop, encode(StopOrder{grace.count(), tell}));
  }
  void kill() override { channel_->send(kKill); }
  void ask(char kind, const std::string& payload) override { channel_->send(kind, payload); }
  void leave() override { channel_->close(); }
  void collect_ends() override {}  // the channel's end shows the process's end
  void check_time(Clock::time_point now) override;
  std::optional<Clock::time_point> next_deadline() const override;

 private:
  void take(const Frame& frame);
  void take_hello(const AgentHello& hello);
  void take_rank_event(const Frame& frame);
  void read_words();
  void channel_ended(const std::string& why);
  void lose(const Error& why, bool final);
  int end_process(milliseconds patience);

  EventLoop& loop_;
  HostEvents& events_;
  AgentPlace place_;
  pid_t process_ = -1;
  Descriptor words_from_;
  std::unique_ptr<Channel> channel_;
  std::string words_, line_;
  Clock::time_point started_ = Clock::now(), next_beat_ = started_;
  bool greeted_ = false, lost_ = false;
  bool unprepared_ = false;  // it has not answered prepare() yet
};

RemoteHost::RemoteHost(EventLoop& loop, HostEvents& events, const AgentPlace& place)
    : loop_(loop), events_(events), place_(place) {
  Pipe input = open_pipe(), output = open_pipe(), errors = open_pipe();
  process_ = start_process(agent_command(place), input.read_end.get(), output.write_end.get(),
                           errors.write_end.get());
  words_from_ = std::move(errors.read_end);
  ::fcntl(words_from_.get(), F_SETFL, O_NONBLOCK);
  loop_.watch(words_from_.get(), POLLIN, [this] { read_words(); });
  channel_ =
      std::make_unique<Channel>(loop, std::move(output.read_end), std::move(input.write_end));
  channel_->listen([this](const Frame& frame) { take(frame); },
                   [this](const std::string& why) { channel_ended(why); });
  channel_->begin();
}

RemoteHost::~RemoteHost() {
  if (words_from_.open()) loop_.forget(words_from_.get());
  channel_->close();
  end_process(lost_ ? milliseconds(0) : kToEnd);
}

// Returns the process's wait status; kills the process when it takes longer.
int RemoteHost::end_process(milliseconds patience) {
  constexpr milliseconds kPause{5};
  int status = 0;
  if (process_ < 0) return status;
  Clock::time_point until = Clock::now() + patience;
  while (::waitpid(process_, &status, WNOHANG) == 0) {
    if (Clock::now() >= until) ::kill(-process_, SIGKILL);
    std::this_thread::sleep_for(kPause);
  }
  process_ = -1;
  return status;
}

void RemoteHost::read_words() {
  std::array<char, 4096> bytes;
  ssize_t size = ::read(words_from_.get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (size <= 0) {
    loop_.forget(words_from_.get());
    words_from_.close();
    return;
  }
  std::string_view text(bytes.data(), static_cast<std::size_t>(size));
  words_ += text;
  if (words_.size() > kKeptWords) words_.erase(0, words_.size() - kKeptWords);
  if (!greeted_) return;  // until then it explains why there is no agent
  for (char c : text) {
    if (c != '\n') {
      line_ += c;
      continue;
    }
    events_.on_host_words(place_.index, line_);
    line_.clear();
  }
}

void RemoteHost::take(const Frame& frame) {
  if (lost_) return;
  try {
    take_rank_event(frame);
  } catch (const MachineError& error) {  // the message cannot be decoded
    lose(error, true);
  }
}

void RemoteHost::take_rank_event(const Frame& frame) {
  switch (frame.kind) {
    case kHello:
      return take_hello(decode<AgentHello>(frame.payload));
    case kPrepared:
      unprepared_ = false;
      return events_.on_prepared(place_.index, decode<Prepared>(frame.payload));
    case kStoreOpen:
      return events_.on_store_open(place_.index, static_cast<int>(decode_number(frame.payload)));
    case kOutput: {
      auto output = decode<RankBytes>(frame.payload);
      return events_.on_output(output.rank, output.stream, output.bytes);
    }
    case kOutputEnd: {
      auto output = decode<RankBytes>(frame.payload);
      return events_.on_output_end(output.rank, output.stream);
    }
    case kReport: {
      auto report = decode<RankBytes>(frame.payload);
      return events_.on_report(report.rank, std::string(report.bytes));
    }
    case kRankEnd: {
      auto end = decode<RankEndMessage>(frame.payload);
      return events_.on_rank_end(end.rank, end.status, end.told);
    }
    case kRankKilled:
      return events_.on_rank_killed(static_cast<int>(decode_number(frame.payload)));
    case kIdle:
      // An agent whose ranks have ended says so, and again when it is told to stop them. The second
      // time may come when the next attempt has begun, of which it says nothing.
      if (!unprepared_) events_.on_idle(place_.index);
      return;
    case kTold:
      return events_.on_told(place_.index, static_cast<int>(decode_number(frame.payload)));
    case kNotice:
      return events_.on_notice(place_.index, decode<HostNotice>(frame.payload));
    case kError: {
      auto failure = decode<RemoteFailure>(frame.payload);
      return lose(Error(failure.code, fmt::format("host {}: {}", place_.host.name, failure.text)),
                  true);
    }
    case kCopies:
    case kDone:
      return events_.on_answer(place_.index, frame.kind, frame.payload);
    default:  // a heartbeat
      return;
  }
}

void RemoteHost::take_hello(const AgentHello& hello) {
  greeted_ = true;
  if (hello.version != LOCKSTEP_VERSION || hello.libtorch != libtorch_version()) {
    ConfigError error("host {} has lockstep {} with libtorch {}, this machine {} with {}",
                      place_.host.name, hello.version, hello.libtorch, LOCKSTEP_VERSION,
                      libtorch_version());
    error.set_advice("lockstep cluster setup brings this machine's version to all hosts");
    lose(error, true);
    return;
  }
  events_.on_ready(place_.index, hello);
}

void RemoteHost::channel_ended(const std::string& why) {
  if (lost_) return;
  int status = end_process(kToEnd);
  while (words_from_.open()) {
    std::size_t before = words_.size();
    read_words();
    if (words_.size() == before) break;
  }
  if (!why.empty()) {
    lose(MachineError("host {}: {}", place_.host.name, why), true);
  } else if (!greeted_) {
    // Unless ssh itself failed (255, or killed), waiting does not help: there is no lockstep.
    bool final = WIFEXITED(status) && WEXITSTATUS(status) != 255;
    lose(remote_error(place_.host, status, words_), final);
  } else {
    MachineError error("host {} lost: its agent's connection ended", place_.host.name);
    std::string last(trim(words_));
    if (!last.empty()) error.set_cause(last.substr(last.rfind('\n') + 1));
    lose(error, false);
  }
}

void RemoteHost::lose(const Error& why, bool final) {
  if (lost_) return;
  lost_ = true;
  if (words_from_.open()) loop_.forget(words_from_.get());
  words_from_.close();
  channel_->close();
  end_process(milliseconds(0));
  events_.on_lost(place_.index, why, final);
}

void RemoteHost::check_time(Clock::time_point now) {
  if (lost_) return;
  auto connect = milliseconds(static_cast<int64_t>(place_.remote.connect_seconds * 1000));
  if (!greeted_) {
    if (now - started_ > connect + kToSayHello) {
      lose(MachineError("host {}: no agent answered within {}", place_.host.name,
                        short_duration(std::chrono::duration<double>(now - started_).count())),
           false);
    }
    return;
  }
  auto silent = now - channel_->last_heard();
  if (silent > place_.silence) {
    std::string where = place_.host.address.empty() ? "" : " (" + place_.host.address + ")";
    lose(MachineError("host {}{} lost: no sign of life for {:.1f} s", place_.host.name, where,
                      std::chrono::duration<double>(silent).count()),
         false);
    return;
  }
  if (now < next_beat_) return;
  channel_->send(kBeat);
  next_beat_ = now + kBeatEvery;
}

std::optional<Clock::time_point> RemoteHost::next_deadline() const {
  if (lost_) return std::nullopt;
  return Clock::now() + std::min<Clock::duration>(kBeatEvery, place_.silence / 4);
}

}  // namespace

std::unique_ptr<HostControl> make_remote_host(EventLoop& loop, HostEvents& events,
                                              const AgentPlace& place) {
  return std::make_unique<RemoteHost>(loop, events, place);
}

}  // namespace lockstep
