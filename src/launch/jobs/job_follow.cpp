#include "launch/jobs/job_follow.h"

#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/error.h"
#include "launch/jobs/job_stream.h"
#include "launch/processes/descriptor.h"

namespace lockstep {

namespace {

constexpr int kSshFailed = 255;
constexpr std::chrono::seconds kFirstPause{1}, kLongestPause{10};
constexpr int kLosses = 6;  // looks in a row that find no launcher

class Follower {
 public:
  Follower(const FoundJob& job, const FollowOptions& options)
      : job_(job), options_(options), host_(options.host) {}

  FollowEnd run() {
    std::vector<std::string> words = options_.words;
    for (auto pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
      const RemoteResult result = connect(words);
      if (reader_.whole()) return {.exit_code = reader_.exit_code(), .lost = why_lost()};
      const bool broken = !WIFEXITED(result.status) || WEXITSTATUS(result.status) == kSshFailed ||
                          result.status == 0;
      if (!broken) throw remote_error(*result.host, result.status, result.error);
      if (!told_) note("the connection to " + host_ + " is lost; the job goes on without it");
      told_ = true;
      std::this_thread::sleep_for(pause);
      if (std::string lost = look_again(); !lost.empty()) {
        return {.exit_code = std::nullopt, .lost = lost};
      }
      words = words_to_go_on();
    }
  }

 private:
  RemoteResult connect(const std::vector<std::string>& words) {
    const Host& host = job_.place(host_).host;
    reader_.begin_again();
    RemoteRun run;
    run.on_output = [this](std::size_t, Stream stream, std::string_view bytes) {
      if (stream != kStandardOutput) return;
      if (told_) note("connected to " + host_ + " again");
      told_ = false;
      reader_.read(bytes);
    };
    const RemoteJob there{
        .host = &host, .shell_text = lockstep_text(job_.remote, words), .ends_with_us = true};
    return run_jobs({there}, job_.remote, run).front();
  }

  // Learns where the launcher is now. Returns why the job counts as lost; nobody answers at all
  // where this machine has no network, which says nothing.
  std::string look_again() {
    HostList hosts{.hosts = {}, .source = "its hosts"};
    for (const FoundJob::Place& place : job_.places) hosts.hosts.push_back(place.host);
    FoundJob now;
    try {
      now = find_job(job_.record.id, hosts, job_.remote);
    } catch (const MachineError&) {
      return "";
    }
    const bool moved = now.record.term > job_.record.term;
    losses_ = now.lives() || now.ended() ? 0 : losses_ + 1;
    job_ = std::move(now);
    if (moved && options_.rank < 0) {
      host_ = job_.record.launcher;
      note("the job goes on from " + host_);
      reader_ = make_reader();
    }
    const FoundJob::Place& launcher = job_.launcher();
    if (launcher.saw || losses_ < kLosses) return "";
    return launcher.error;
  }

  std::vector<std::string> words_to_go_on() const {
    std::vector<std::string> out = {"job", "output", job_.record.id};
    if (options_.rank >= 0) out.insert(out.end(), {"--rank", std::to_string(options_.rank)});
    if (!options_.follow) out.push_back("--once");
    const auto add = [&](const char* option, int64_t offset) {
      if (offset >= 0) out.insert(out.end(), {option, std::to_string(offset)});
    };
    add("--out", reader_.out_offset());
    add("--err", reader_.err_offset());
    return out;
  }

  std::string why_lost() const {
    if (!reader_.lost()) return "";
    return "its launcher on " + host_ + " ended without a word";
  }

  JobStreamReader make_reader() const {
    return JobStreamReader(
        [](bool errors, std::string_view bytes) { write_all(errors ? 2 : 1, bytes); });
  }

  void note(const std::string& line) const {
    if (options_.on_note) options_.on_note(line);
  }

  FoundJob job_;
  const FollowOptions& options_;
  std::string host_;
  JobStreamReader reader_ = make_reader();
  bool told_ = false;
  int losses_ = 0;
};

}  // namespace

FollowEnd follow_job(const FoundJob& job, const FollowOptions& options) {
  return Follower(job, options).run();
}

}  // namespace lockstep
