// Runs many commands on many hosts at once, in one loop over their pipes, their ends and our
// signals.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "launch/hosts/remote.h"
#include "launch/processes/child_process.h"
#include "launch/processes/first_failure.h"
#include "launch/processes/signal_queue.h"

namespace lockstep {

namespace {

constexpr std::size_t kKept = 65536;       // bytes per stream, where a visitor sees all of it
constexpr std::chrono::seconds kGrace{2};  // from SIGTERM to SIGKILL after a signal to us

// Wraps a command so that its process group ends when standard input ends before the command does.
std::string ending_with_input(const std::string& text) {
  return "exec 3<&0 </dev/null; { trap '' TERM; read -r _ <&3; kill -TERM 0; sleep 5; kill -KILL "
         "0; "
         "} >/dev/null 2>&1 & w=$!; (\n" +
         text + "\n) 3<&-; s=$?; kill -KILL $w; exit $s";
}

struct Running {
  std::size_t job = 0;
  pid_t pid = -1, feeder = -1;
  Descriptor ended;  // readable when the process is gone
  std::array<Descriptor, 2> output;
  Descriptor held;  // the other end of the process's standard input
  Clock::time_point start;
  RemoteResult result;

  void send(int signal) const {
    ::kill(-pid, signal);
    if (feeder > 0) ::kill(-feeder, signal);
  }
};

class Batch {
 public:
  Batch(const std::vector<RemoteJob>& jobs, const RemoteOptions& options, const RemoteRun& run)
      : jobs_(jobs), options_(options), run_(run), results_(jobs.size()) {}

  // Leaves nothing behind, however the batch ends.
  ~Batch() {
    for (auto& running : running_) {
      running->send(SIGKILL);
      ::waitpid(running->pid, nullptr, 0);
      if (running->feeder > 0) ::waitpid(running->feeder, nullptr, 0);
    }
  }

  std::vector<RemoteResult> finish() {
    while (true) {
      while (signal_ == 0 && next_ < jobs_.size() &&
             running_.size() < static_cast<std::size_t>(run_.at_once)) {
        start(next_++);
      }
      if (running_.empty()) break;
      wait();
      check_time();
    }
    if (signal_ != 0)
      throw Error(128 + signal_, fmt::format("stopped by {}", signal_name(signal_)));
    return std::move(results_);
  }

 private:
  void start(std::size_t index) {
    const RemoteJob& job = jobs_[index];
    auto running = std::make_unique<Running>();
    running->job = index;
    running->start = Clock::now();
    running->result.host = job.host;
    Pipe output = open_pipe(), errors = open_pipe(), input;
    if (job.ends_with_us || !job.feeder.empty()) {
      input = open_pipe();
    } else {
      input.read_end = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }
    std::string text = job.ends_with_us ? ending_with_input(job.shell_text) : job.shell_text;
    running->pid = start_process(host_command(*job.host, options_, text), input.read_end.get(),
                                 output.write_end.get(), errors.write_end.get());
    running->ended = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, running->pid, 0)));
    running->output = {std::move(output.read_end), std::move(errors.read_end)};
    for (Descriptor& stream : running->output) ::fcntl(stream.get(), F_SETFL, O_NONBLOCK);
    running_.push_back(std::move(running));
    Running& started = *running_.back();
    if (!started.ended.open()) {
      throw MachineError("cannot watch a process: {}", std::strerror(errno));
    }
    if (!job.feeder.empty()) {
      Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      started.feeder =
          start_process(job.feeder, nothing.get(), input.write_end.get(), errors.write_end.get());
    } else {
      started.held = std::move(input.write_end);
    }
  }

  void wait() {
    std::vector<pollfd> ready = {{signals_.descriptor(), POLLIN, 0}};
    for (auto& running : running_) {
      for (int fd : {running->ended.get(), running->output[0].get(), running->output[1].get()}) {
        ready.push_back({fd, POLLIN, 0});  // closed ones are -1, which poll skips
      }
    }
    ::poll(ready.data(), ready.size(), 100);
    if (ready[0].revents) take_signal();
    for (std::size_t i = running_.size(); i-- > 0;) {
      for (int stream : {0, 1}) {
        if (ready[2 + i * 3 + stream].revents) read_some(*running_[i], static_cast<Stream>(stream));
      }
      if (ready[1 + i * 3].revents) end(i);
    }
  }

  void take_signal() {
    int signal = signals_.next();
    if (signal == 0) return;
    bool again = signal_ != 0;
    signal_ = signal;
    signalled_ = Clock::now();
    for (auto& running : running_) running->send(again ? SIGKILL : SIGTERM);
  }

  // Returns false when there is no more for now.
  bool read_some(Running& running, Stream stream) {
    char bytes[32768];
    Descriptor& source = running.output[stream];
    if (!source.open()) return false;
    ssize_t size = ::read(source.get(), bytes, sizeof bytes);
    if (size == 0) source.close();
    if (size <= 0) return false;
    std::string_view piece(bytes, static_cast<std::size_t>(size));
    std::string& kept = stream == kStandardOutput ? running.result.output : running.result.error;
    kept += piece;
    if (run_.on_output) {
      run_.on_output(running.job, stream, piece);
      if (kept.size() > 2 * kKept) kept.erase(0, kept.size() - kKept);
    }
    return true;
  }

  void end(std::size_t index) {
    Running& running = *running_[index];
    ::waitpid(running.pid, &running.result.status, 0);
    if (running.feeder > 0) end_feeder(running);
    for (Stream stream : {kStandardOutput, kStandardError}) {
      while (read_some(running, stream)) {
      }
    }
    running.result.seconds = std::chrono::duration<double>(Clock::now() - running.start).count();
    if (running.result.timed_out) {
      running.result.error += fmt::format("\nno end within {} s", run_.limit.count());
    }
    RemoteResult& result = results_[running.job] = std::move(running.result);
    std::size_t job = running.job;
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
    if (run_.on_end) run_.on_end(job, result);
  }

  // A feeder that still writes, or that ends by the signal for it, lost its reader, which is not
  // its failure. A failure of its own counts only if the reader succeeded.
  void end_feeder(Running& running) {
    int status = 0;
    if (::waitpid(running.feeder, &status, WNOHANG) == 0) {
      ::kill(-running.feeder, SIGKILL);
      ::waitpid(running.feeder, &status, 0);
    }
    // A shell exits with this number when its command got the signal.
    const bool lost_reader = WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGPIPE;
    if (running.result.status == 0 && WIFEXITED(status) && !lost_reader) {
      running.result.status = status;
    }
  }

  void check_time() {
    Clock::time_point now = Clock::now();
    for (auto& running : running_) {
      bool late = run_.limit.count() > 0 && now - running->start > run_.limit;
      if (late) running->result.timed_out = true;
      if (late || (signal_ != 0 && now - signalled_ > kGrace)) running->send(SIGKILL);
    }
  }

  const std::vector<RemoteJob>& jobs_;
  const RemoteOptions& options_;
  const RemoteRun& run_;
  SignalQueue signals_{{SIGINT, SIGTERM, SIGHUP}};
  std::vector<RemoteResult> results_;
  std::vector<std::unique_ptr<Running>> running_;
  std::size_t next_ = 0;
  int signal_ = 0;  // the signal that stopped us
  Clock::time_point signalled_;
};

}  // namespace

std::vector<RemoteResult> run_jobs(const std::vector<RemoteJob>& jobs, const RemoteOptions& options,
                                   const RemoteRun& run) {
  return Batch(jobs, options, run).finish();
}

std::vector<RemoteResult> run_on_hosts(const HostList& hosts, const RemoteOptions& options,
                                       const std::string& shell_text, std::chrono::seconds limit) {
  std::vector<RemoteJob> jobs;
  for (const Host& host : hosts.hosts) jobs.push_back({.host = &host, .shell_text = shell_text});
  return run_jobs(jobs, options, {.limit = limit});
}

}  // namespace lockstep
