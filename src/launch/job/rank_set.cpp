#include "launch/job/rank_set.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "base/file.h"
#include "base/usable_cores.h"
#include "launch/processes/child_process.h"

namespace lockstep {

namespace {

// How long, after the last rank has ended, output of processes that left its process group is
// awaited.
constexpr std::chrono::milliseconds kLastOutput{1000};

}  // namespace

RankSet::RankSet(EventLoop& loop, RankEvents& events, int host)
    : loop_(loop), events_(events), host_(host), orphan_killer_(kMostLocalRanks) {}

RankSet::~RankSet() {
  if (nursery_) loop_.forget(nursery_->descriptor());
  nursery_.reset();
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (int which = 0; which < kSources; ++which) {
      if (source(i, which).open()) loop_.forget(source(i, which).get());
    }
    pid_t pid = ranks_[i].process.pid;
    if (!ranks_[i].running || pid < 0) continue;
    ::kill(-pid, SIGKILL);
    orphan_killer_.forget(pid);
    ::waitpid(pid, nullptr, 0);
  }
}

RankCommand RankSet::command_of(const StartOrder& order, int local_rank,
                                const Descriptor& store) const {
  const CoreFacts facts = core_facts();
  bool leads = order.first_rank + local_rank == 0;
  RankCommand command;
  command.words = order.command;
  command.inherited = leads ? store.get() : -1;
  command.environment = environment_of_rank(
      order, local_rank, threads_of_rank(facts.threads(), order.ranks), command.inherited);
  if (order.pin) command.cores = cores_of_rank(facts, order.ranks, local_rank);
  if (leads) command.terminal = order.terminal;
  command.rows = order.rows;
  command.columns = order.columns;
  return command;
}

void RankSet::start(const StartOrder& order, Descriptor store) {
  StartOrder found = order;
  std::string& program = found.command.at(0);
  program = program.empty() ? fs::read_symlink("/proc/self/exe").string() : find_program(program);
  if (order.pin && static_cast<std::size_t>(order.ranks) > usable_cores().size()) {
    throw ConfigError("{} ranks cannot be pinned to {} cores", order.ranks, usable_cores().size());
  }
  first_rank_ = order.first_rank;
  stopping_ = false;
  kill_at_.reset();
  drain_until_.reset();
  std::vector<RankCommand> commands;
  for (int i = 0; i < order.ranks; ++i) commands.push_back(command_of(found, i, store));
  if (order.command.front().empty() && RankNursery::suits(commands)) {
    start_by_nursery(commands);
  } else {
    start_each(commands);
  }
  for (int i = 0; i < order.ranks; ++i) {
    watch_output(i, !paused_);
    loop_.watch(source(i, kReports).get(), POLLIN, [this, i] { read(i, kReports); });
  }
}

void RankSet::start_each(const std::vector<RankCommand>& commands) {
  try {
    for (const RankCommand& command : commands) {
      ranks_.push_back({.process = start_rank(command, orphan_killer_)});
    }
  } catch (const Error&) {
    for (const Rank& rank : ranks_) {
      ::kill(-rank.process.pid, SIGKILL);
      orphan_killer_.forget(rank.process.pid);
      ::waitpid(rank.process.pid, nullptr, 0);
    }
    ranks_.clear();
    throw;
  }
}

void RankSet::start_by_nursery(const std::vector<RankCommand>& commands) {
  nursery_.emplace(commands);
  for (RankProcess& process : nursery_->take_streams()) {
    ranks_.push_back({.process = std::move(process)});
  }
  loop_.watch(nursery_->descriptor(), POLLIN, [this] { take_births(); });
}

void RankSet::take_births() {
  const std::optional<std::vector<pid_t>> born = nursery_->take_births();
  if (!born) return;
  if (born->empty()) return end_unborn(nursery_->status());
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].process.pid = (*born)[i];
    orphan_killer_.watch((*born)[i]);
  }
  nursery_->let_go();
  loop_.forget(nursery_->descriptor());
  nursery_.reset();
}

// Ends the ranks before they are there; `status` is as from waitpid.
void RankSet::end_unborn(int status) {
  loop_.forget(nursery_->descriptor());
  nursery_.reset();
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i].running = false;
    events_.on_rank_end(first_rank_ + static_cast<int>(i), status, stopping_);
  }
  finish_when_done();
}

Descriptor& RankSet::source(int index, int which) {
  RankProcess& process = ranks_[index].process;
  return which == kReports ? process.reports : process.output[which];
}

void RankSet::watch_output(int index, bool watched) {
  for (int which : {kOutput, kErrors}) {
    Descriptor& from = source(index, which);
    if (!from.open()) continue;
    if (watched) {
      loop_.watch(from.get(), POLLIN, [this, index, which] { read(index, which); });
    } else {
      loop_.forget(from.get());
    }
  }
}

void RankSet::pause_output(bool pause) {
  if (pause == paused_) return;
  paused_ = pause;
  for (std::size_t i = 0; i < ranks_.size(); ++i) watch_output(static_cast<int>(i), !pause);
}

void RankSet::read(int index, int which) {
  char bytes[65536];
  Descriptor& from = source(index, which);
  ssize_t size = ::read(from.get(), bytes, sizeof bytes);
  std::string_view text(bytes, static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  int rank = first_rank_ + index;
  if (size > 0 && which == kReports) {
    take_reports(index, text);
  } else if (size > 0) {
    events_.on_output(rank, static_cast<Stream>(which), text);
  } else if (size == 0 || errno != EINTR) {  // a terminal ends with EIO
    loop_.forget(from.get());
    from.close();
    if (which == kReports) return;
    events_.on_output_end(rank, static_cast<Stream>(which));
    finish_when_done();
  }
}

void RankSet::take_reports(int index, std::string_view bytes) {
  std::string& line = ranks_[index].report;
  for (char c : bytes) {
    if (c != '\n') {
      line += c;
      continue;
    }
    std::string whole;
    whole.swap(line);
    events_.on_report(first_rank_ + index, whole);
  }
}

// Children that a rank left behind die with it. The group is killed before its leader is reaped, so
// that its number cannot have been reused.
void RankSet::collect_ends() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    if (!rank.running || rank.process.pid < 0) continue;
    siginfo_t info{};
    auto id = static_cast<id_t>(rank.process.pid);
    if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0) continue;
    if (info.si_pid != rank.process.pid) continue;
    ::kill(-rank.process.pid, SIGKILL);
    orphan_killer_.forget(rank.process.pid);
    int status = 0;
    ::waitpid(rank.process.pid, &status, 0);
    rank.running = false;
    // A rank's reports come before its end: why it stops decides what is done about it.
    pollfd waiting{rank.process.reports.get(), POLLIN, 0};
    while (rank.process.reports.open() && ::poll(&waiting, 1, 0) > 0) read(i, kReports);
    events_.on_rank_end(first_rank_ + static_cast<int>(i), status, stopping_);
  }
  finish_when_done();
}

bool RankSet::any_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.running; });
}

void RankSet::finish_when_done() {
  if (ranks_.empty() || any_running()) return;
  auto quiet = [](const Rank& r) {
    return !r.process.output[0].open() && !r.process.output[1].open();
  };
  Clock::time_point now = Clock::now();
  if (!drain_until_) drain_until_ = now + kLastOutput;
  bool all_quiet = std::all_of(ranks_.begin(), ranks_.end(), quiet);
  if (!all_quiet && now < *drain_until_) return;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    for (int which = 0; which < kSources; ++which) {
      Descriptor& from = source(i, which);
      if (!from.open()) continue;
      loop_.forget(from.get());
      if (which != kReports) {
        events_.on_output_end(first_rank_ + static_cast<int>(i), static_cast<Stream>(which));
      }
    }
  }
  ranks_.clear();
  kill_at_.reset();
  drain_until_.reset();
  events_.on_idle(host_);
}

void RankSet::stop(std::chrono::milliseconds grace, bool tell) {
  stopping_ = true;
  if (ranks_.empty()) {
    events_.on_idle(host_);
    return;
  }
  if (nursery_) return end_unborn(SIGTERM);
  kill_at_ = earlier(kill_at_, Clock::now() + grace);
  if (!tell) return;
  for (const Rank& rank : ranks_) {
    if (rank.running) ::kill(-rank.process.pid, SIGTERM);
  }
}

void RankSet::kill() {
  stopping_ = true;
  kill_at_.reset();
  if (nursery_) return end_unborn(SIGKILL);
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    if (!ranks_[i].running) continue;
    events_.on_rank_killed(first_rank_ + static_cast<int>(i));
    ::kill(-ranks_[i].process.pid, SIGKILL);
  }
}

void RankSet::check_time(Clock::time_point now) {
  if (kill_at_ && now >= *kill_at_) kill();
  if (drain_until_ && now >= *drain_until_) finish_when_done();
}

std::optional<Clock::time_point> RankSet::next_deadline() const {
  return earlier(kill_at_, drain_until_);
}

}  // namespace lockstep
