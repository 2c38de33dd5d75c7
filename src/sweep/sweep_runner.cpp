#include "sweep/sweep_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "launch/processes/child_process.h"
#include "launch/processes/event_loop.h"
#include "launch/processes/signal_queue.h"

namespace lockstep {

namespace {

using std::chrono::seconds;

constexpr seconds kStopTime{30};  // from SIGTERM to SIGKILL: launch gives its ranks 10 s

struct RunningCell {
  std::size_t index = 0;
  pid_t pid = -1;
  std::vector<int> cores;
  Clock::time_point started;
  std::optional<Clock::time_point> deadline;  // by its time limit
  std::optional<Clock::time_point> kill_at;   // after it was asked to stop
  std::string stopped_by;                     // "stopped", "time limit"; empty: nobody
  std::uintmax_t output_from = 0;             // where this attempt's output begins
};

// Sets the calling thread's cores, which its children inherit; the destructor restores them.
class CoresForChild {
 public:
  explicit CoresForChild(const std::vector<int>& cores) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int core : cores) CPU_SET(core, &set);
    ::sched_setaffinity(0, sizeof set, &set);
  }
  ~CoresForChild() { ::sched_setaffinity(0, sizeof before_, &before_); }
  CoresForChild(const CoresForChild&) = delete;
  CoresForChild& operator=(const CoresForChild&) = delete;

 private:
  cpu_set_t before_;
};

Descriptor open_file(const fs::path& path, int flags) {
  Descriptor out(::open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (!out.open()) {
    throw MachineError("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  }
  return out;
}

// Returns the first line that says what went wrong: ranks speak before the launcher does.
std::string first_error(const fs::path& output, std::uintmax_t from) {
  const std::string text = read_file(output);
  for (const std::string& line :
       split(std::string_view(text).substr(std::min(from, text.size())), '\n')) {
    const std::size_t at = line.find("error: ");
    const bool begins = at == 0 || (at != std::string::npos && line.front() == '[');
    if (begins) return to_utf8(to_code_points(line.substr(at + strlen("error: "))));
  }
  return "";
}

class SweepRunner {
 public:
  SweepRunner(const SweepConfig& config, std::vector<SweepCell> cells);
  SweepOutcome run();

 private:
  CellRecord& record(std::size_t index) { return cells_[index].record; }
  std::size_t cores_of(const CellRecord& cell) const;
  bool start_next();
  void start(std::size_t index, const std::vector<int>& cores);
  void stop(RunningCell& cell, const char* why);
  void take_signals();
  void collect();
  void finish(const RunningCell& cell, int status);
  int fetch(std::size_t index) const;
  void check_time();
  std::optional<Clock::time_point> next_deadline() const;
  void show() const;
  std::string position(std::size_t index) const;
  SweepOutcome outcome() const;

  const SweepConfig& config_;
  SweepFolder folder_;
  std::vector<SweepCell> cells_;
  std::vector<int> free_cores_;
  std::size_t next_ = 0;
  std::vector<RunningCell> running_;
  SignalQueue signals_;
  int signal_ = 0;  // the signal that stopped us
};

SweepRunner::SweepRunner(const SweepConfig& config, std::vector<SweepCell> cells)
    : config_(config),
      folder_{config.sweep.folder},
      cells_(std::move(cells)),
      free_cores_(usable_cores()),
      signals_({SIGCHLD, SIGINT, SIGTERM, SIGHUP}) {
  free_cores_.resize(std::min(free_cores_.size(), static_cast<std::size_t>(config.sweep.cores)));
}

// Without a number of threads a cell takes all cores, and runs alone.
std::size_t SweepRunner::cores_of(const CellRecord& cell) const {
  const auto all = static_cast<std::size_t>(config_.sweep.cores);
  if (config_.sweep.threads == 0 || config_.sweep.at_once == 1) return all;
  return std::min(all, static_cast<std::size_t>(cell.setup.ranks() * config_.sweep.threads));
}

std::string SweepRunner::position(std::size_t index) const {
  return fmt::format("{}/{} {}", index + 1, cells_.size(), cells_[index].record.name);
}

// Returns whether a cell was started.
bool SweepRunner::start_next() {
  while (next_ < cells_.size() && record(next_).is_over()) ++next_;
  if (next_ == cells_.size() || signal_ != 0) return false;
  if (running_.size() >= static_cast<std::size_t>(config_.sweep.at_once)) return false;
  const std::size_t needed = cores_of(record(next_));
  if (free_cores_.size() < needed) return false;
  std::vector<int> cores(free_cores_.begin(), free_cores_.begin() + static_cast<long>(needed));
  free_cores_.erase(free_cores_.begin(), free_cores_.begin() + static_cast<long>(needed));
  start(next_++, cores);
  return true;
}

void SweepRunner::start(std::size_t index, const std::vector<int>& cores) {
  CellRecord& cell = record(index);
  const fs::path run = folder_.run(cell.name);
  const bool resume = has_checkpoint(run);
  if (!resume) fs::remove_all(run);  // without a checkpoint there is nothing to resume
  if (cell.setup.hosts > 1 && config_.hosts.hosts.empty()) {
    write_file(folder_.cell(cell.name) / "lab.toml", lab_toml(config_, cell));
  } else if (!config_.hosts.hosts.empty()) {
    write_file(folder_.cell(cell.name) / "hosts.txt", hosts_file(config_, cell));
  }
  cell.state = "running";
  cell.attempts += 1;
  cell.error.clear();
  write_cell(folder_, cell);

  const fs::path output = folder_.output(cell.name);
  Descriptor out = open_file(output, O_WRONLY | O_CREAT | O_APPEND);
  Descriptor nothing = open_file("/dev/null", O_RDONLY);
  RunningCell running{.index = index, .cores = cores, .started = Clock::now(), .stopped_by = ""};
  running.output_from = fs::file_size(output);
  if (config_.sweep.cell_minutes > 0) {
    running.deadline =
        running.started +
        std::chrono::duration_cast<Clock::duration>(
            std::chrono::duration<double, std::ratio<60>>(config_.sweep.cell_minutes));
  }
  CoresForChild bound(cores);
  running.pid = start_process(cell_command(config_, cells_[index], resume), nothing.get(),
                              out.get(), out.get());
  log_info("{}: {}", position(index), resume ? "goes on" : "starts");
  running_.push_back(std::move(running));
}

void SweepRunner::stop(RunningCell& cell, const char* why) {
  if (!cell.stopped_by.empty()) return;
  cell.stopped_by = why;
  cell.kill_at = Clock::now() + kStopTime;
  ::kill(cell.pid, SIGTERM);
}

void SweepRunner::take_signals() {
  while (int signal = signals_.next()) {
    if (signal == SIGCHLD) continue;
    if (signal_ == 0) {
      signal_ = signal;
      log_info("stopping: running cells save a checkpoint; once more kills them");
      for (RunningCell& cell : running_) stop(cell, "stopped");
    } else {
      for (RunningCell& cell : running_) ::kill(cell.pid, SIGKILL);
    }
  }
  collect();
}

void SweepRunner::collect() {
  for (std::size_t i = running_.size(); i-- > 0;) {
    int status = 0;
    if (::waitpid(running_[i].pid, &status, WNOHANG) != running_[i].pid) continue;
    RunningCell ended = std::move(running_[i]);
    running_.erase(running_.begin() + static_cast<long>(i));
    finish(ended, status);
  }
}

// Brings a cell's run here from hosts that share nothing with this machine. Nothing else runs:
// cells on real hosts run one at a time. Returns its wait status.
int SweepRunner::fetch(std::size_t index) const {
  const fs::path output = folder_.output(cells_[index].record.name);
  const Descriptor out = open_file(output, O_WRONLY | O_CREAT | O_APPEND);
  const Descriptor nothing = open_file("/dev/null", O_RDONLY);
  const pid_t pid =
      start_process(fetch_command(config_, cells_[index]), nothing.get(), out.get(), out.get());
  int status = 0;
  while (::waitpid(pid, &status, 0) != pid && errno == EINTR) {
  }
  return status;
}

void SweepRunner::finish(const RunningCell& running, int status) {
  free_cores_.insert(free_cores_.end(), running.cores.begin(), running.cores.end());
  CellRecord& cell = record(running.index);
  const double took = std::chrono::duration<double>(Clock::now() - running.started).count();
  cell.seconds += took;
  if (config_.host_names.push) {
    const int fetched = fetch(running.index);
    if (status == 0) status = fetched;
  }
  cell.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : kExitMachine;
  if (cell.exit_code == kExitOk) {
    cell.state = "done";  // even if it was asked to stop after its last step
  } else if (!running.stopped_by.empty()) {
    cell.state = running.stopped_by;
    if (cell.state == "time limit") {
      cell.exit_code = kExitMachine;
      cell.error = fmt::format("did not end within {} minutes", config_.sweep.cell_minutes);
    }
  } else {
    cell.state = cell.exit_code == kExitDiverged ? "diverged" : "failed";
    cell.error = first_error(folder_.output(cell.name), running.output_from);
    if (WIFSIGNALED(status)) cell.error = fmt::format("was killed by signal {}", WTERMSIG(status));
  }
  write_cell(folder_, cell);
  const std::string text =
      fmt::format("{}: {} after {}", position(running.index), cell.state, short_duration(took));
  if (cell.error.empty()) {
    log_info("{}", text);
  } else {
    log_warning("{}: {} (all of it: {})", text, cell.error, folder_.output(cell.name).string());
  }
}

void SweepRunner::check_time() {
  const Clock::time_point now = Clock::now();
  for (RunningCell& cell : running_) {
    if (cell.kill_at && now >= *cell.kill_at) ::kill(cell.pid, SIGKILL);
    if (cell.deadline && now >= *cell.deadline) stop(cell, "time limit");
  }
}

std::optional<Clock::time_point> SweepRunner::next_deadline() const {
  std::optional<Clock::time_point> next;
  if (::isatty(STDERR_FILENO) == 1) next = Clock::now() + seconds(1);
  for (const RunningCell& cell : running_) {
    if (cell.kill_at) {
      next = earlier(next, std::max(*cell.kill_at, Clock::now() + seconds(1)));
    } else {
      next = earlier(next, cell.deadline);
    }
  }
  return next;
}

// Shows on a terminal how far the running cells are.
void SweepRunner::show() const {
  if (::isatty(STDERR_FILENO) != 1 || running_.empty()) return;
  std::vector<std::string> parts;
  for (const RunningCell& running : running_) {
    std::string part = position(running.index);
    const fs::path live = folder_.run(cells_[running.index].record.name) / "live.json";
    if (fs::exists(live)) {
      auto json = nlohmann::json::parse(read_file(live), nullptr, false);
      if (json.is_object()) {
        part += fmt::format(" step {}/{}", json.value("step", 0), json.value("total_steps", 0));
      }
    }
    parts.push_back(std::move(part));
  }
  show_progress(join(parts, "   "));
}

SweepOutcome SweepRunner::run() {
  EventLoop loop;
  loop.watch(signals_.descriptor(), POLLIN, [this] { take_signals(); });
  while (true) {
    while (start_next()) {
    }
    if (running_.empty()) break;
    loop.wait(next_deadline());
    collect();
    check_time();
    show();
  }
  end_progress();
  return outcome();
}

SweepOutcome SweepRunner::outcome() const {
  SweepOutcome out;
  for (const SweepCell& cell : cells_) {
    const CellRecord& r = cell.record;
    if (r.state == "done") {
      ++out.done;
    } else if (r.state == "waiting" || r.state == "running" || r.state == "stopped") {
      ++out.left;
    } else {
      ++out.failed;
      if (out.exit_code == 0) out.exit_code = r.exit_code;
    }
  }
  if (signal_ != 0) out.exit_code = 128 + signal_;
  return out;
}

}  // namespace

std::vector<std::string> cell_command(const SweepConfig& config, const SweepCell& swept,
                                      bool resume) {
  const CellRecord& cell = swept.record;
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const SweepFolder folder{config.sweep.folder};
  std::vector<std::string> out;
  const bool here = config.hosts.hosts.empty();
  if (here && cell.setup.hosts > 1) {
    out = {program, "netlab", "run", (folder.cell(cell.name) / "lab.toml").string(), "--"};
  }
  out.insert(out.end(), {program, "launch"});
  if (!here) {
    const SweepHosts& hosts = config.host_names;
    out.insert(out.end(), {"--hosts", (folder.cell(cell.name) / "hosts.txt").string()});
    out.insert(out.end(), hosts.ssh.begin(), hosts.ssh.end());
    if (hosts.push) out.emplace_back("--push");
    out.insert(out.end(), hosts.options.begin(), hosts.options.end());
  } else if (cell.setup.hosts > 1) {
    std::vector<std::string> names;
    for (int i = 0; i < cell.setup.hosts; ++i) {
      names.push_back(fmt::format("{}:{}", virtual_host(i), cell.setup.ranks_per_host));
    }
    out.insert(out.end(), {"-H", join(names, ",")});
  } else {
    out.insert(out.end(), {"-n", std::to_string(cell.setup.ranks_per_host)});
  }
  if (config.sweep.threads > 0) {
    out.insert(out.end(), {"-x", fmt::format("OMP_NUM_THREADS={}", config.sweep.threads)});
  }
  out.insert(out.end(), {"--", "train", (here ? folder.config(cell.name) : config.base).string()});
  if (!here) out.insert(out.end(), swept.words.begin(), swept.words.end());
  // The hosts may have more of the cell than came here before it was broken off.
  if (config.host_names.push && cell.attempts > 1) {
    out.emplace_back("--resume=auto");
  } else if (resume) {
    out.emplace_back("--resume");
  }
  return out;
}

std::vector<std::string> fetch_command(const SweepConfig& config, const SweepCell& swept) {
  const SweepFolder folder{config.sweep.folder};
  const std::string& name = swept.record.name;
  std::vector<std::string> out = {fs::read_symlink("/proc/self/exe").string(), "fetch", "--hosts",
                                  (folder.cell(name) / "hosts.txt").string()};
  out.insert(out.end(), config.host_names.ssh.begin(), config.host_names.ssh.end());
  out.push_back(folder.run(name).string());
  return out;
}

SweepOutcome run_sweep(const SweepConfig& config, std::vector<SweepCell> cells) {
  const SweepFolder folder{config.sweep.folder};
  std::vector<std::string> names;
  for (const SweepCell& cell : cells) {
    names.push_back(cell.record.name);
    if (cell.record.attempts > 0) continue;
    write_cell(folder, cell.record);
    write_file(folder.config(cell.record.name), cell.config);
  }
  write_sweep_index(folder, names);
  return SweepRunner(config, std::move(cells)).run();
}

}  // namespace lockstep
