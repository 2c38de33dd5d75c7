#include "launch/jobs/job_host.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/program.h"
#include "base/text.h"
#include "launch/hosts/host_key.h"
#include "launch/jobs/job_lock.h"
#include "launch/jobs/job_record.h"
#include "launch/jobs/job_stream.h"
#include "launch/processes/descriptor.h"
#include "launch/processes/event_loop.h"
#include "train/folder/run_folder.h"

namespace lockstep {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLook{100};
constexpr std::size_t kPiece = 65536;

JobRecord require_job(const std::string& id) {
  if (is_job_id(id)) {
    if (auto record = read_job_record(id)) return *record;
  }
  throw ConfigError("no job \"{}\" on this host{}", id, did_you_mean(id, jobs_of_this_host()));
}

// A file that may grow, read from an offset on.
struct GrowingFile {
  fs::path path;
  int64_t offset = 0;

  // Returns what is new, at most a piece.
  std::string news() {
    std::string out(kPiece, '\0');
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t size =
        file.open() ? ::pread(file.get(), out.data(), out.size(), static_cast<off_t>(offset)) : 0;
    out.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    offset += static_cast<int64_t>(out.size());
    return out;
  }
  // Goes to where the last so many lines begin; a negative number means the file's beginning.
  void go_to_last_lines(int lines) {
    offset = 0;
    if (lines < 0 || !fs::exists(path)) return;
    const std::string text = read_file(path);
    std::size_t at = text.size();
    if (at > 0 && text[at - 1] == '\n') --at;
    for (int i = 0; i < lines && at != std::string::npos; ++i) {
      at = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    }
    const bool none = lines == 0;
    if (at != std::string::npos) offset = static_cast<int64_t>(none ? text.size() : at + 1);
  }
};

std::array<GrowingFile, 2> launcher_files(const std::string& id) {
  return {GrowingFile{job_folder(id) / "out"}, GrowingFile{job_folder(id) / "err"}};
}

bool anyone_lives(const std::string& id, bool launcher_counts) {
  if (launcher_counts && job_lock_holder(job_folder(id) / "launcher")) return true;
  for (const fs::directory_entry& entry : fs::directory_iterator(job_folder(id))) {
    const bool of_agent = entry.path().filename().string().starts_with("agent.");
    if (!launcher_counts && of_agent && job_lock_holder(entry.path())) return true;
  }
  return false;
}

[[noreturn]] void become_launcher(const fs::path& folder, const std::string& id) {
  ::setsid();
  const fs::path own = job_folder(id);
  const int nothing = ::open("/dev/null", O_RDONLY);
  const int out = ::open((own / "out").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  const int errors = ::open((own / "err").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (nothing < 0 || out < 0 || errors < 0) ::_exit(kExitMachine);
  ::dup2(nothing, 0);
  ::dup2(out, 1);
  ::dup2(errors, 2);
  for (int fd : {nothing, out, errors}) {
    if (fd > 2) ::close(fd);
  }
  if (::chdir(folder.c_str()) != 0) ::_exit(kExitMachine);
  ::execl("/proc/self/exe", "lockstep", "launch", "--job", id.c_str(), static_cast<char*>(nullptr));
  ::_exit(127);
}

void print_news(std::array<GrowingFile, 2>& files) {
  for (int stream : {0, 1}) {
    for (std::string text = files[stream].news(); !text.empty(); text = files[stream].news()) {
      write_all(stream + 1, text);
    }
  }
}

// Whether a launcher of this term has ranks that do their work, as far as one can tell.
bool has_settled(const JobRecord& record, double ranks_since) {
  constexpr double kForAStep = 20, kForAnyProgram = 2;  // seconds
  if (record.state != JobState::kRunning || ranks_since == 0) return false;
  if (record.stepped > 0) return true;
  const double patience = record.run_folder.empty() ? kForAnyProgram : kForAStep;
  return unix_seconds() - ranks_since > patience;
}

void send_piece(char kind, GrowingFile& file) {
  for (std::string text = file.news(); !text.empty(); text = file.news()) {
    const std::string head = fmt::format("{} {} {}\n", kind, file.offset, text.size());
    if (!write_all(1, head + text)) throw MachineError("nobody reads the output any more");
  }
}

}  // namespace

int start_job_launcher(const std::string& id) {
  const JobRecord record = require_job(id);
  if (auto holder = job_lock_holder(job_folder(id) / "launcher")) {
    throw MachineError("the launcher of job {} runs here already, process {}", id, holder->process);
  }
  const fs::path folder = in_home(record.folder);
  if (!fs::is_directory(folder)) {
    ConfigError error("the folder {} is not there", record.folder);
    error.set_advice("mount or copy it to every host, or --cwd FOLDER");
    throw error;
  }
  std::array<GrowingFile, 2> files = launcher_files(id);
  for (GrowingFile& file : files) file.go_to_last_lines(0);
  const pid_t launcher = ::fork();
  if (launcher < 0) throw MachineError("cannot start a process: {}", std::strerror(errno));
  if (launcher == 0) become_launcher(folder, id);
  double ranks_since = 0;
  for (;;) {
    int status = 0;
    const bool ended = ::waitpid(launcher, &status, WNOHANG) == launcher;
    print_news(files);
    if (ended) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    const JobRecord now = require_job(id);
    if (now.state == JobState::kRunning && ranks_since == 0) ranks_since = unix_seconds();
    if (has_settled(now, ranks_since)) return kExitOk;
    std::this_thread::sleep_for(kLook);
  }
}

void end_job_here(const std::string& id, int term, int exit_code, const std::string& message) {
  JobRecord record = require_job(id);
  if (record.term > term) return;
  // The key goes first: who sees that the job has ended may rely on it.
  const ProgramEnd end =
      run_to_end({"/bin/sh", "-c", remove_host_key_text(id, ".lockstep/jobs/" + id)});
  if (record.state != JobState::kEnded) {
    record.state = JobState::kEnded;
    record.ended = unix_seconds();
    record.exit_code = exit_code;
    record.message = message;
    write_job_record(record);
  }
  if (end.status != 0) throw MachineError("job {}: its key cannot be removed: {}", id, end.said);
}

void send_job_output(const JobOutput& wanted) {
  const JobRecord record = require_job(wanted.id);
  std::array<GrowingFile, 2> files = launcher_files(wanted.id);
  if (wanted.rank >= 0) {
    files[0].path = RunFolder(in_home(record.run_folder)).log_of(wanted.rank);
    files[1].path.clear();
    if (record.run_folder.empty() || !fs::exists(files[0].path)) {
      throw DataError("job {}: no log of rank {} here", wanted.id, wanted.rank);
    }
  }
  files[0].go_to_last_lines(wanted.lines);
  files[1].go_to_last_lines(wanted.lines);
  if (wanted.out_offset >= 0) files[0].offset = wanted.out_offset;
  if (wanted.err_offset >= 0) files[1].offset = wanted.err_offset;
  write_all(1, std::string(kJobStreamMark) + "\n");
  for (;;) {
    const bool lives = anyone_lives(wanted.id, wanted.rank < 0);
    send_piece('o', files[0]);
    send_piece('e', files[1]);
    if (!lives || !wanted.follow) break;
    std::this_thread::sleep_for(kLook);
  }
  const JobRecord now = require_job(wanted.id);
  if (now.state == JobState::kEnded) {
    write_all(1, fmt::format("x {}\n", now.exit_code));
  } else if (wanted.follow) {
    write_all(1, "l\n");
  } else {
    write_all(1, "g\n");
  }
}

void stop_and_send_output(const std::string& id, bool kill) {
  constexpr milliseconds kBetween{300};  // two signals at once would be one
  require_job(id);
  std::array<GrowingFile, 2> files = launcher_files(id);
  for (GrowingFile& file : files) file.go_to_last_lines(0);
  const auto holder = job_lock_holder(job_folder(id) / "launcher");
  if (holder && holder->process > 1) {
    ::kill(holder->process, kill ? SIGINT : SIGTERM);
    if (kill) {
      std::this_thread::sleep_for(kBetween);
      ::kill(holder->process, SIGINT);
    }
  }
  send_job_output({.id = id, .out_offset = files[0].offset, .err_offset = files[1].offset});
}

}  // namespace lockstep
