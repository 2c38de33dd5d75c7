#include "launch/job/launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "dist/rank/network.h"
#include "launch/hosts/host_address.h"
#include "launch/job/after_run.h"
#include "launch/job/host_control.h"
#include "launch/job/job_ending.h"
#include "launch/job/launch_log.h"
#include "launch/processes/child_process.h"
#include "launch/processes/signal_queue.h"

namespace lockstep {

namespace {

// A host of the list, and what is known of it while its agent lives.
struct Seat {
  Host host;
  std::unique_ptr<HostControl> control;
  std::optional<ProcessId> agent;  // the newest; its successor ends it first
  AgentHello hello = {};
  Prepared prepared = {};

  // The address that the others talk to; empty when unknown.
  std::string address() const {
    return address_for_others(host, {hello.ssh_address, hello.addresses});
  }
};

class Launcher : HostEvents, SupervisorActions {
 public:
  explicit Launcher(const Launch& launch);
  LaunchOutcome run();

 private:
  bool here() const { return launch_.hosts.hosts.empty(); }
  // Orders of the supervisor.
  void connect(int host) override;
  void release(int host) override;
  void start(const Attempt& attempt) override;
  void stop(std::chrono::milliseconds grace, bool tell) override;
  void kill() override;
  void note(const LaunchEvent& event) override;
  // Events of hosts.
  void on_ready(int host, const AgentHello& hello) override;
  void on_prepared(int host, const Prepared& prepared) override;
  void on_store_open(int host, int port) override;
  void on_told(int host, int signal) override;
  void on_notice(int host, const HostNotice& notice) override;
  void on_lost(int host, const Error& why, bool final) override;
  void on_host_words(int host, const std::string& line) override;
  void on_output(int rank, Stream stream, std::string_view bytes) override;
  void on_output_end(int rank, Stream stream) override;
  void on_report(int rank, const std::string& line) override;
  void on_rank_end(int rank, int status, bool told) override;
  void on_rank_killed(int rank) override;
  void on_idle(int host) override;
  void on_answer(int host, char kind, std::string_view payload) override;

  std::string towards(int host) const;
  bool on_one_machine() const;
  StartOrder order_for(int host, int first_rank, int port) const;
  void take_signals();
  void check_time();
  std::optional<Clock::time_point> next_deadline() const;
  LaunchOutcome outcome() const;
  // Machines that come later.
  std::vector<Host> hosts() const;
  void look_for_hosts(Clock::time_point now);
  void take_in(const std::vector<Host>& found);
  // What follows a run.
  void turn(std::optional<Clock::time_point> until);
  void say_end(const LaunchOutcome& out);
  void follow_up(LaunchOutcome& out);
  bool stays_on(const Host& host) const;
  PowerOrder power_order(int host) const;

  Launch launch_;
  EventLoop loop_;
  std::vector<Seat> seats_;  // first: the local orphan killer must inherit nothing
  SignalQueue signals_;
  RankOutput output_;
  std::string run_id_;
  LaunchLog log_;
  JobEnding ending_;
  AfterRun after_;
  HostFinder finder_;
  Supervisor supervisor_;
  std::vector<std::unique_ptr<HostControl>> leaving_;  // may still be on the stack
  Attempt attempt_;
  bool starting_ = false;  // hosts are being prepared for the attempt
  bool ran_ = false;       // ranks were started
  std::set<int> unprepared_;
  Clock::time_point started_ = Clock::now();
};

std::string new_run_id() {
  return fmt::format("{:x}-{}", std::chrono::system_clock::now().time_since_epoch().count(),
                     getpid());
}

std::vector<SupervisedHost> supervised(const Launch& launch) {
  if (launch.hosts.hosts.empty()) return {{"", launch.ranks}};
  std::vector<SupervisedHost> out;
  for (const Host& host : launch.hosts.hosts) {
    out.push_back({.name = host.name, .slots = host.slots, .away = host.away});
  }
  return out;
}

std::vector<Seat> seats_of(const Launch& launch, EventLoop& loop, HostEvents& events) {
  std::vector<Seat> out;
  for (const Host& host : launch.hosts.hosts)
    out.push_back({.host = host, .control = {}, .agent = {}});
  if (out.empty()) {
    out.push_back(
        {.host = {}, .control = make_local_host(loop, events, 0, launch.spot), .agent = {}});
  }
  return out;
}

Launcher::Launcher(const Launch& launch)
    : launch_(launch),
      seats_(seats_of(launch, loop_, *this)),
      signals_({SIGCHLD, SIGINT, SIGTERM, SIGHUP}),
      output_(launch.ranks, launch.output),
      run_id_(new_run_id()),
      log_(output_, launch.events, run_id_),
      ending_(launch.ending, launch.supervision.grace,
              [this](const std::string& line) { output_.note("lockstep launch: " + line); }),
      after_(ending_, {[this](std::optional<Clock::time_point> until) { turn(until); },
                       [this](const LaunchEvent& event) { note(event); },
                       [this](int host, char kind, const std::string& payload) {
                         if (seats_[host].control) seats_[host].control->ask(kind, payload);
                       }}),
      finder_(launch.finder,
              [this](const std::string& line) { output_.note("lockstep launch: " + line); }),
      supervisor_(supervised(launch), launch.supervision, *this) {
  // A log beside the ranks' output belongs to this job from the start.
  if (!launch.output.folder.empty() && launch.events.parent_path() == launch.output.folder) {
    log_.open();
  }
  if (!here()) ::signal(SIGPIPE, SIG_IGN);  // writing tells when ssh has ended
}

LaunchOutcome Launcher::run() {
  loop_.watch(signals_.descriptor(), POLLIN, [this] { take_signals(); });
  supervisor_.begin(Clock::now());
  while (!supervisor_.verdict()) {
    loop_.wait(next_deadline());
    check_time();
    leaving_.clear();
  }
  LaunchOutcome out = outcome();
  say_end(out);
  follow_up(out);
  for (Seat& seat : seats_) {
    if (seat.control) seat.control->leave();
  }
  after_.tell_last();
  // Whoever stops a job often sends the signal twice, to the process and to its group. Once the
  // queue is gone, the second signal would end us before we have said what happened.
  if (out.interrupted_by != 0) {
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  }
  return out;
}

void Launcher::check_time() {
  Clock::time_point now = Clock::now();
  for (Seat& seat : seats_) {
    if (seat.control) seat.control->check_time(now);
  }
  supervisor_.check_time(Clock::now());
  look_for_hosts(now);
  after_.check_time(now);
  const JobEnding::Due due = ending_.check_time(now);
  if (supervisor_.verdict() || due == JobEnding::Due::kNothing) return;
  if (due == JobEnding::Due::kCost) note({.event = "cost", .text = ""});
  if (due == JobEnding::Due::kNear) {
    note({.event = "budget", .text = fmt::format("{} is spent", ending_.spent_text())});
  }
  if (due == JobEnding::Due::kStop) {
    note({.event = "budget",
          .text = fmt::format("{} is spent: the ranks save a checkpoint and end",
                              ending_.spent_text())});
    supervisor_.run_out(ending_.grace_of_stop(), now);
  }
}

std::optional<Clock::time_point> Launcher::next_deadline() const {
  std::optional<Clock::time_point> next = supervisor_.next_deadline();
  next = earlier(next, ending_.next_deadline());
  next = earlier(next, after_.next_deadline());
  if (!supervisor_.missing().empty()) next = earlier(next, finder_.next_deadline());
  for (const Seat& seat : seats_) {
    if (seat.control) next = earlier(next, seat.control->next_deadline());
  }
  return next;
}

void Launcher::take_signals() {
  bool ended = false;
  while (int signal = signals_.next()) {
    if (signal == SIGCHLD) {
      ended = true;
    } else {
      if (supervisor_.verdict()) after_.interrupted();
      supervisor_.interrupted(signal, Clock::now());
    }
  }
  if (!ended) return;
  ending_.notifier().collect();
  after_.collect();
  take_in(finder_.collect());
  for (Seat& seat : seats_) {
    if (seat.control) seat.control->collect_ends();
  }
}

std::vector<Host> Launcher::hosts() const {
  std::vector<Host> out;
  for (const Seat& seat : seats_) out.push_back(seat.host);
  return out;
}

// The first start has what its list says; later others may take the place of those that are lost.
void Launcher::look_for_hosts(Clock::time_point now) {
  if (finder_.is_on() && ran_ && !supervisor_.missing().empty()) finder_.ask(hosts(), now);
}

void Launcher::take_in(const std::vector<Host>& found) {
  if (found.empty()) return;
  for (const auto& [index, host] : match_seats(hosts(), supervisor_.missing(), found)) {
    Seat& seat = seats_[index];
    seat.host.name = host.name;
    seat.host.ssh_name = host.ssh_name;
    seat.host.address = host.address;
    seat.agent.reset();
    seat.hello = {};
    seat.prepared = {};
    supervisor_.replace(index, host.name, Clock::now());
  }
}

void Launcher::connect(int host) {
  if (here()) {
    supervisor_.host_ready(host, Clock::now());
    return;
  }
  Seat& seat = seats_[host];
  AgentPlace place{seat.host,           host,        launch_.remote, launch_.silence, seat.agent,
                   launch_.agent_words, launch_.spot};
  if (seat.control) leaving_.push_back(std::move(seat.control));
  seat.control = make_remote_host(loop_, *this, place);
}

void Launcher::release(int host) {
  if (!here()) leaving_.push_back(std::move(seats_[host].control));
}

void Launcher::on_ready(int host, const AgentHello& hello) {
  Seat& seat = seats_[host];
  seat.hello = hello;
  seat.agent = hello.process;
  if (launch_.needs_gpus && seat.host.slots > hello.gpus) {
    ConfigError error("host {}: {} ranks but {} GPU{}", seat.host.name, seat.host.slots, hello.gpus,
                      hello.gpus == 1 ? "" : "s");
    error.set_advice("one rank a GPU, or run.device=cpu");
    on_lost(host, error, true);
    return;
  }
  supervisor_.host_ready(host, Clock::now());
}

void Launcher::on_lost(int host, const Error& why, bool final) {
  if (seats_[host].control) leaving_.push_back(std::move(seats_[host].control));
  unprepared_.erase(host);
  after_.lost(host);
  supervisor_.host_lost(host, why, final, Clock::now());
}

bool Launcher::on_one_machine() const {
  if (here()) return true;
  const std::string& first = seats_[attempt_.hosts.front()].hello.machine;
  return !first.empty() && std::all_of(attempt_.hosts.begin(), attempt_.hosts.end(),
                                       [&](int h) { return seats_[h].hello.machine == first; });
}

// Returns the address of another host; a host uses the own address from which it routes there.
std::string Launcher::towards(int host) const {
  if (on_one_machine()) return "";
  int first = attempt_.hosts.front();
  std::vector<int> others = {first};
  if (host == first) others.assign(attempt_.hosts.begin() + 1, attempt_.hosts.end());
  for (int other : others) {
    std::string address = seats_[other].address();
    if (!address.empty()) return address;
  }
  // This machine has many names and no ssh that tells its address; its route to the others does.
  std::string beyond = seats_[host].address();
  return beyond.empty() ? "" : local_address_towards(beyond).address;
}

void Launcher::start(const Attempt& attempt) {
  attempt_ = attempt;
  std::vector<std::string> names;
  for (int host : attempt.hosts) {
    names.insert(names.end(), here() ? launch_.ranks : seats_[host].host.slots,
                 seats_[host].host.name);
  }
  output_.set_hosts(names);
  starting_ = true;
  unprepared_ = {attempt.hosts.begin(), attempt.hosts.end()};
  const std::string& program = launch_.command.front();
  for (int host : attempt.hosts) {
    if (!starting_ || !seats_[host].control) return;  // one of them has been lost
    PrepareOrder order{launch_.folder, program, launch_.interface, towards(host),
                       power_order(host)};
    if (order.towards.empty() && !on_one_machine() && launch_.interface.empty()) {
      ConfigError error("no address of host {} is known to the others", seats_[host].host.name);
      error.set_advice("give it in a hosts file (address=10.0.0.1), or --interface NAME");
      on_lost(host, error, true);
      return;
    }
    seats_[host].control->prepare(order);
  }
}

void Launcher::on_prepared(int host, const Prepared& prepared) {
  seats_[host].prepared = prepared;
  unprepared_.erase(host);
  if (!starting_ || !unprepared_.empty()) return;
  Seat& first = seats_[attempt_.hosts.front()];
  const std::string& address = first.prepared.address;
  first.control->open_store(address.empty() ? "127.0.0.1" : address);
}

void Launcher::on_store_open(int, int port) {
  if (!starting_) return;
  starting_ = false;
  ran_ = true;
  int first_rank = 0;
  for (int host : attempt_.hosts) {
    StartOrder order = order_for(host, first_rank, port);
    first_rank += order.ranks;
    if (seats_[host].control) seats_[host].control->start(order);
  }
}

StartOrder Launcher::order_for(int host, int first_rank, int port) const {
  const Seat& seat = seats_[host];
  StartOrder order;
  order.command = launch_.command;
  order.first_rank = first_rank;
  order.ranks = here() ? launch_.ranks : seat.host.slots;
  order.size = attempt_.ranks;
  order.attempt = attempt_.number;
  order.run_id = run_id_;
  order.host = seat.host.name;
  const Seat& first = seats_[attempt_.hosts.front()];
  order.address = seat.prepared.address;
  order.interface = seat.prepared.interface;
  order.master_address = first.prepared.address;
  if (order.master_address.empty()) {
    order.master_address = "127.0.0.1";
    if (!here()) order.address = order.master_address;  // agents that share this machine
  }
  order.master_port = port;
  order.environment = launch_.environment;
  if (std::string cost = ending_.variable(); !cost.empty()) order.environment.push_back(cost);
  order.grace_milliseconds = launch_.supervision.grace.count();
  order.pin = launch_.pin || seat.host.pin;
  for (Stream stream : {kStandardOutput, kStandardError}) {
    order.terminal[stream] = output_.on_terminal(stream);
    winsize size{};
    if (!order.terminal[stream] || ::ioctl(stream + 1, TIOCGWINSZ, &size) != 0) continue;
    order.rows = size.ws_row;
    order.columns = size.ws_col;
  }
  return order;
}

void Launcher::stop(std::chrono::milliseconds grace, bool tell) {
  starting_ = false;
  std::vector<int> hosts = attempt_.hosts;
  for (int host : hosts) {
    if (seats_[host].control) seats_[host].control->stop(grace, tell);
  }
}

void Launcher::kill() {
  for (int host : attempt_.hosts) {
    if (seats_[host].control) seats_[host].control->kill();
  }
}

void Launcher::note(const LaunchEvent& what) {
  LaunchEvent event = what;
  ending_.add_cost(event);
  std::string host = event.host >= 0 ? seats_[event.host].host.name : "";
  log_.note(event, supervisor_.attempt(), host);
  if (launch_.on_event) launch_.on_event(event);
  const auto& lines = output_.last_lines(std::max(0, event.rank));
  ending_.tell(event, host, supervisor_.attempt(), {lines.begin(), lines.end()});
}

void Launcher::on_told(int host, int signal) { supervisor_.host_told(host, signal, Clock::now()); }

void Launcher::on_notice(int host, const HostNotice& notice) {
  supervisor_.host_noticed(host, notice, Clock::now());
}

void Launcher::on_host_words(int host, const std::string& line) {
  output_.note(here() ? "lockstep launch: " + line
                      : fmt::format("[{}] {}", seats_[host].host.name, line));
}

void Launcher::on_output(int rank, Stream stream, std::string_view bytes) {
  output_.take(rank, stream, bytes);
}

void Launcher::on_output_end(int rank, Stream stream) { output_.end(rank, stream); }

void Launcher::on_report(int rank, const std::string& line) {
  std::vector<std::string> words = split(line, ' ');
  if (words.size() != 2) return;
  ending_.take_report(words[0], words[1]);
  if (words[0] == "told") {
    int signal = std::atoi(words[1].c_str());
    supervisor_.host_told(supervisor_.host_of_rank(rank), signal, Clock::now());
  } else if (words[0] == "saved") {
    supervisor_.progressed();
  } else if (words[0] == "first_step") {
    log_.open();
    auto since = supervisor_.failed_at().value_or(started_);
    double seconds = std::chrono::duration<double>(Clock::now() - since).count();
    std::string text;
    if (supervisor_.failed_at()) {
      text = fmt::format("step {} done {:.1f} s after the ranks stopped", words[1], seconds);
    }
    note({.event = "first_step", .text = text, .seconds = seconds});
  }
}

void Launcher::on_rank_end(int rank, int status, bool told) {
  supervisor_.rank_ended(
      {.rank = rank, .status = status, .time = Clock::now(), .told_to_stop = told});
}

void Launcher::on_rank_killed(int rank) {
  output_.note(fmt::format("lockstep launch: {} did not stop in time: killed",
                           supervisor_.name_of_rank(rank)));
}

void Launcher::on_idle(int host) { supervisor_.host_idle(host, Clock::now()); }

LaunchOutcome Launcher::outcome() const {
  const JobVerdict& verdict = *supervisor_.verdict();
  LaunchOutcome out{.exit_code = verdict.exit_code, .failure = verdict.failure};
  out.interrupted_by = verdict.interrupted_by;
  if (out.interrupted_by != 0) {
    out.message = fmt::format("stopped by {}", signal_name(out.interrupted_by));
    return out;
  }
  if (verdict.run_out) {
    out.message = fmt::format("stopped before the budget was spent: {}", ending_.spent_text());
    out.advice = "with a larger --budget it goes on from the newest checkpoint";
    return out;
  }
  if (verdict.loss) {
    out.message = verdict.loss->describe();
    return out;
  }
  if (!out.failure) return out;
  const RankEnd& end = *out.failure;
  double seconds = std::chrono::duration<double>(end.time - started_).count();
  int host = supervisor_.host_of_rank(end.rank);
  std::string where = here() || host < 0 ? "" : " on " + seats_[host].host.name;
  out.message = fmt::format("rank {} of {}{} {} after {:.1f} s", end.rank, attempt_.ranks, where,
                            describe_end(end), seconds);
  const auto& lines = output_.last_lines(end.rank);
  if (!lines.empty()) out.message += "; its last lines:";
  for (const std::string& line : lines) out.message += "\n    | " + line;
  out.advice = advice_for(end);
  return out;
}

void Launcher::turn(std::optional<Clock::time_point> until) {
  loop_.wait(earlier(next_deadline(), until));
  check_time();
  leaving_.clear();
}

void Launcher::say_end(const LaunchOutcome& out) {
  LaunchEvent end{.event = "end", .text = "", .rank = out.failure ? out.failure->rank : -1};
  end.exit_code = out.exit_code;
  note(end);
  const std::string why = out.message.substr(0, out.message.find('\n'));
  end.text = out.message.empty() ? "ended well" : "ended: " + why;
  const auto& lines = output_.last_lines(std::max(0, end.rank));
  ending_.tell(end, "", supervisor_.attempt(), {lines.begin(), lines.end()});
}

// Who stops a run from here is there, and may want its hosts; so is who made a mistake.
void Launcher::follow_up(LaunchOutcome& out) {
  std::vector<std::string> names;
  for (const Seat& seat : seats_) {
    if (!seat.host.name.empty()) names.push_back(seat.host.name);
  }
  after_.run_then(out, names);
  if (!launch_.ending.power.off) return;
  std::vector<PowerSeat> seats;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    const Seat& seat = seats_[i];
    if (here() || !seat.control || !seat.agent) continue;
    seats.push_back({.host = static_cast<int>(i),
                     .name = seat.host.name,
                     .stays = stays_on(seat.host),
                     .launcher = is_this_machine(seat.host)});
  }
  after_.end_power(std::move(seats), ran_ && out.interrupted_by == 0);
}

// The machine that a person sits at; that of a detached job's launcher is a host like others.
bool Launcher::stays_on(const Host& host) const {
  return !launch_.ending.detached && is_this_machine(host);
}

PowerOrder Launcher::power_order(int host) const {
  const EndingOptions& ending = ending_.options();
  const PowerOptions& power = ending.power;
  if (!power.off || here() || stays_on(seats_[host].host)) return {};
  return {.command = power.command.empty() ? "default" : power.command,
          .after_seconds = power.after_minutes * 60,
          .run_folder = ending.run,
          .leads = host == attempt_.hosts.front(),
          .mirrored = ending.mirrored,
          .anyway = power.anyway};
}

void Launcher::on_answer(int host, char kind, std::string_view payload) {
  after_.answered(host, kind, payload);
}

}  // namespace

LaunchOutcome run_launch(const Launch& launch) {
  Launch found = launch;
  if (!launch.hosts.hosts.empty()) found.ranks = launch.hosts.ranks();
  if (found.ranks < 1 || (launch.hosts.hosts.empty() && found.ranks > kMostLocalRanks)) {
    throw ConfigError("{} ranks: expected a number from 1 to {}", launch.ranks, kMostLocalRanks);
  }
  if (launch.command.empty()) throw ConfigError("no command to launch");
  if (launch.hosts.hosts.empty()) {
    std::string& program = found.command[0];
    if (!program.empty()) program = find_program(program);
    std::size_t cores = usable_cores().size();
    if (launch.pin && static_cast<std::size_t>(launch.ranks) > cores) {
      throw ConfigError("{} ranks cannot be pinned to {} cores", launch.ranks, cores);
    }
  }
  return Launcher(found).run();
}

}  // namespace lockstep
