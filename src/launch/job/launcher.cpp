#include "launch/job/launcher.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "dist/rank/token.h"
#include "launch/job/after_run.h"
#include "launch/job/job_ending.h"
#include "launch/job/launch_log.h"
#include "launch/job/launch_orders.h"
#include "launch/job/seats.h"
#include "launch/processes/child_process.h"
#include "launch/processes/signal_queue.h"

namespace lockstep {

namespace {

class Launcher : HostEvents, SupervisorActions {
 public:
  explicit Launcher(const Launch& launch);
  LaunchOutcome run();

 private:
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

  void order_start(int host, int first_rank, int port);
  void take_signals();
  void check_time();
  std::optional<Clock::time_point> next_deadline() const;
  LaunchOutcome outcome() const;
  // Machines that come later.
  void look_for_hosts(Clock::time_point now);
  void take_in(const std::vector<Host>& found);
  // What follows a run.
  void turn(std::optional<Clock::time_point> until);
  void say_end(const LaunchOutcome& out);
  void follow_up(LaunchOutcome& out);

  Launch launch_;
  EventLoop loop_;
  Seats seats_;  // first: the local orphan killer must inherit nothing
  SignalQueue signals_;
  RankOutput output_;
  std::string run_id_;
  LaunchOrders orders_;
  LaunchLog log_;
  JobEnding ending_;
  AfterRun after_;
  HostFinder finder_;
  Supervisor supervisor_;
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

Launcher::Launcher(const Launch& launch)
    : launch_(launch),
      seats_(launch_, loop_, *this),
      signals_({SIGCHLD, SIGINT, SIGTERM, SIGHUP}),
      output_(launch.ranks, launch.output),
      run_id_(new_run_id()),
      orders_(launch_, seats_, output_, run_id_),
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
      supervisor_(seats_.supervised(), launch.supervision, *this) {
  // A log beside the ranks' output belongs to this job from the start.
  if (!launch.output.folder.empty() && launch.events.parent_path() == launch.output.folder) {
    log_.open();
  }
  if (!seats_.here()) ::signal(SIGPIPE, SIG_IGN);  // writing tells when ssh has ended
}

LaunchOutcome Launcher::run() {
  loop_.watch(signals_.descriptor(), POLLIN, [this] { take_signals(); });
  supervisor_.begin(Clock::now());
  while (!supervisor_.verdict()) {
    loop_.wait(next_deadline());
    check_time();
    seats_.forget_released();
  }
  LaunchOutcome out = outcome();
  say_end(out);
  follow_up(out);
  seats_.leave();
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
  seats_.check_time(now);
  supervisor_.check_time(Clock::now());
  look_for_hosts(now);
  after_.check_time(now);
  const JobEnding::Due due = ending_.check_time(now);
  if (supervisor_.verdict() || due == JobEnding::Due::kNothing) return;
  if (due == JobEnding::Due::kCost) note({.event = "cost", .text = ""});
  if (due == JobEnding::Due::kNear) {
    note(budget_event(ending_.spent_text(), false));
  }
  if (due == JobEnding::Due::kStop) {
    note(budget_event(ending_.spent_text(), true));
    supervisor_.run_out(ending_.grace_of_stop(), now);
  }
}

std::optional<Clock::time_point> Launcher::next_deadline() const {
  std::optional<Clock::time_point> next = supervisor_.next_deadline();
  next = earlier(next, ending_.next_deadline());
  next = earlier(next, after_.next_deadline());
  if (!supervisor_.missing().empty()) next = earlier(next, finder_.next_deadline());
  return earlier(next, seats_.next_deadline());
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
  seats_.collect_ends();
}

// The first start has what its list says; later others may take the place of those that are lost.
void Launcher::look_for_hosts(Clock::time_point now) {
  if (finder_.is_on() && ran_ && !supervisor_.missing().empty()) finder_.ask(seats_.hosts(), now);
}

void Launcher::take_in(const std::vector<Host>& found) {
  if (found.empty()) return;
  for (const auto& [index, host] : match_seats(seats_.hosts(), supervisor_.missing(), found)) {
    seats_.replace(index, host);
    supervisor_.replace(index, host.name, Clock::now());
  }
}

void Launcher::connect(int host) {
  if (seats_.here()) {
    supervisor_.host_ready(host, Clock::now());
  } else {
    seats_.connect(host);
  }
}

void Launcher::release(int host) {
  if (!seats_.here()) seats_.release(host);
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
  seats_.release(host);
  unprepared_.erase(host);
  after_.lost(host);
  supervisor_.host_lost(host, why, final, Clock::now());
}

void Launcher::start(const Attempt& attempt) {
  attempt_ = attempt;
  attempt_.secret = to_hex(random_token());
  output_.set_hosts(seats_.names_by_rank(attempt));
  starting_ = true;
  unprepared_ = {attempt.hosts.begin(), attempt.hosts.end()};
  for (int host : attempt.hosts) {
    if (!starting_ || !seats_[host].control) return;  // one of them has been lost
    PrepareOrder order;
    try {
      order = orders_.prepare(host, attempt);
    } catch (const ConfigError& error) {
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
  seats_[attempt_.hosts.front()].control->open_store(orders_.master_address(attempt_));
}

void Launcher::on_store_open(int, int port) {
  if (!starting_) return;
  starting_ = false;
  ran_ = true;
  int first_rank = 0;
  for (int host : attempt_.hosts) {
    order_start(host, first_rank, port);
    first_rank += seats_.ranks(host);
  }
}

void Launcher::order_start(int host, int first_rank, int port) {
  if (!seats_[host].control) return;
  StartOrder order = orders_.start(host, attempt_, first_rank, port);
  if (std::string cost = ending_.variable(); !cost.empty()) order.environment.push_back(cost);
  seats_[host].control->start(order);
}

void Launcher::stop(std::chrono::milliseconds grace, bool tell) {
  starting_ = false;
  for (int host : std::vector<int>(attempt_.hosts)) {  // the last to be idle may begin another
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
  output_.note(seats_.here() ? "lockstep launch: " + line
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
    note(first_step_event(words[1], seconds, supervisor_.failed_at().has_value()));
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
  RunEnd run{.ranks = attempt_.ranks, .started = started_, .spent = ending_.spent_text()};
  if (verdict.failure) {
    const int rank = verdict.failure->rank, host = supervisor_.host_of_rank(rank);
    if (!seats_.here() && host >= 0) run.failed_on = seats_[host].host.name;
    const auto& lines = output_.last_lines(rank);
    run.last_lines = {lines.begin(), lines.end()};
  }
  return outcome_of(verdict, run);
}

void Launcher::turn(std::optional<Clock::time_point> until) {
  loop_.wait(earlier(next_deadline(), until));
  check_time();
  seats_.forget_released();
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
  after_.run_then(out, seats_.names());
  if (!launch_.ending.power.off) return;
  after_.end_power(orders_.power_seats(), ran_ && out.interrupted_by == 0);
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
