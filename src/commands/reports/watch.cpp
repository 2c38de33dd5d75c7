#include "commands/reports/watch.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <thread>

#include "base/text.h"
#include "commands/shared/host_arguments.h"
#include "launch/jobs/find_job.h"
#include "report/live/live_view.h"
#include "report/live/log_merge.h"

namespace lockstep {

namespace {

using LiveJson = nlohmann::json;

struct WatchArguments {
  std::string run, ranks;
  bool once = false, json = false, logs = false;
  std::size_t lines = 10;
  RemoteOptions remote;
};

// Parses "host:RUN" or "user@host:RUN", as scp does; a path that exists is a path.
std::optional<Host> host_of(const std::string& run) {
  std::size_t colon = run.find(':');
  if (colon == std::string::npos || colon == 0 || run.find('/') < colon || fs::exists(run)) {
    return {};
  }
  std::string name = run.substr(0, colon);
  return Host{.name = name.substr(name.find('@') + 1), .ssh_name = name, .by_ssh = true};
}

// A job that this machine started: the run is on the host of its rank 0, where live.json is newest.
// Makes the arguments those of HOST:RUN there.
std::optional<Host> host_of_job_run(WatchArguments& arguments) {
  const std::string& id = arguments.run;
  if (!is_job_id(id) || fs::exists(id)) return {};
  const std::vector<KnownJob> known = known_jobs();
  if (std::none_of(known.begin(), known.end(),
                   [&](const KnownJob& job) { return job.id.starts_with(id); })) {
    return {};
  }
  const FoundJob job = find_job(id, {}, {});
  const FoundJob::Place* newest = nullptr;
  for (const FoundJob::Place& place : job.places) {
    if (!place.saw || place.saw->live_time == 0) continue;
    if (newest == nullptr || place.saw->live_time > newest->saw->live_time) newest = &place;
  }
  if (newest == nullptr) {
    MachineError error("job {}: no host that answers has a run of it", job.record.id);
    error.set_advice(fmt::format("lockstep attach {} shows how it starts", job.record.id));
    throw error;
  }
  std::string folder = job.record.run_folder;
  if (folder.starts_with("~/")) folder.erase(0, 2);  // ssh begins at home
  arguments.run = newest->host.name + ":" + folder;
  arguments.remote = job.remote;
  return newest->host;
}

RankFilter filter_of(const WatchArguments& arguments) {
  return arguments.ranks.empty() ? RankFilter() : RankFilter(arguments.ranks);
}

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

int columns_of_terminal() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Shows successive states of a run, redrawn in place on a terminal.
class LiveScreen {
 public:
  LiveScreen(const WatchArguments& arguments, RankFilter ranks)
      : arguments_(arguments), ranks_(std::move(ranks)), terminal_(isatty(STDOUT_FILENO) == 1) {}

  void show(const LiveJson& live) {
    if (arguments_.json) {
      fmt::print("{}\n", only_ranks(live, ranks_).dump());
      std::fflush(stdout);
      return;
    }
    LiveViewOptions options{.run = arguments_.run,
                            .now = unix_seconds(),
                            .color = terminal_,
                            .width = terminal_ ? columns_of_terminal() : 0,
                            .ranks = ranks_};
    std::string table = live_table(live, options);
    if (terminal_ && height_ > 0) fmt::print("\x1b[{}A\x1b[J", height_);
    fmt::print("{}", table);
    std::fflush(stdout);
    height_ = std::count(table.begin(), table.end(), '\n');
  }

 private:
  const WatchArguments& arguments_;
  RankFilter ranks_;
  bool terminal_;
  std::ptrdiff_t height_ = 0;  // lines of the table that is shown
};

std::map<int, LogSource> sources_of(const fs::path& run) {
  std::map<int, LogSource> out;
  if (!fs::exists(run / "live.json")) return out;
  const LiveJson live = read_live(run);
  for (const LiveJson& rank : live.at("ranks")) {
    out[rank.value("rank", 0)] = {rank.value("host", ""), rank.value("clock_offset_seconds", 0.0)};
  }
  return out;
}

// Returns whether nothing more will come. A failed run may be restarted.
bool is_over(const LiveJson& live) {
  constexpr double kRestart = 20;
  const std::string state = live.value("state", "");
  return state == "ended" ||
         (state == "failed" && unix_seconds() - live.value("time", 0.0) > kRestart);
}

int watch_logs(const WatchArguments& arguments) {
  const fs::path run = arguments.run;
  if (!fs::is_directory(run / "logs")) read_live(run);  // says what is wrong
  LogMerge merge(run / "logs", filter_of(arguments), arguments.lines);
  for (;;) {
    merge.set_sources(sources_of(run));
    fmt::print("{}", merge.news());
    std::fflush(stdout);
    if (arguments.once) return kExitOk;
    std::this_thread::sleep_for(std::chrono::milliseconds{500});
  }
}

int watch_here(const WatchArguments& arguments) {
  LiveScreen screen(arguments, filter_of(arguments));
  // In a pipe or a file the table is repeated, so less often; JSON is for programs.
  bool often = arguments.json || isatty(STDOUT_FILENO) == 1;
  for (;;) {
    const LiveJson live = read_live(arguments.run);
    screen.show(live);
    if (arguments.once || is_over(live)) return kExitOk;
    std::this_thread::sleep_for(std::chrono::seconds{often ? 1 : 10});
  }
}

// Runs the same command there, which writes JSON, or lines of logs, until the connection ends.
int watch_there(const Host& host, const WatchArguments& arguments) {
  check_ssh_options(arguments.remote);
  std::vector<std::string> words{"watch", arguments.run.substr(arguments.run.find(':') + 1)};
  words.insert(words.end(),
               {arguments.logs ? "--logs" : "--json", "--lines", std::to_string(arguments.lines)});
  if (arguments.once) words.push_back("--once");
  if (!arguments.ranks.empty()) words.insert(words.end(), {"--ranks", arguments.ranks});

  LiveScreen screen(arguments, RankFilter());
  std::string rest;
  RemoteRun run;
  run.on_output = [&](std::size_t, Stream stream, std::string_view bytes) {
    if (stream != kStandardOutput) return;
    if (arguments.logs) {
      std::cout << bytes << std::flush;
      return;
    }
    rest += bytes;
    for (std::size_t end = 0; (end = rest.find('\n')) != std::string::npos;) {
      screen.show(parse_live(rest.substr(0, end), arguments.run));
      rest.erase(0, end + 1);
    }
  };
  RemoteJob job{
      .host = &host, .shell_text = lockstep_text(arguments.remote, words), .ends_with_us = true};
  RemoteResult result = run_jobs({job}, arguments.remote, run).front();
  if (result.status != 0) throw remote_error(host, result.status, result.error);
  return kExitOk;
}

}  // namespace

int watch(const Arguments& arguments) {
  WatchArguments parsed;
  CommandLine app(
      "Shows what every rank of a run does, each second, on any terminal and host:\n"
      "lockstep watch RUN, HOST:RUN through ssh, or a job; ends with the run",
      "lockstep watch");
  app.add_option("run", parsed.run, "the run folder, HOST:FOLDER, or a job's id")->required();
  app.add_flag("--once", parsed.once, "show it once and stop");
  app.add_flag("--json", parsed.json, "the state as JSON, a line a second (docs/run-folder.md)");
  app.add_flag("--logs", parsed.logs, "the logs of all ranks as one, followed as they grow");
  app.add_option("--ranks", parsed.ranks, "only these: 0,2-3");
  app.add_option("--lines", parsed.lines, "of each log to begin with (10)");
  add_ssh_options(app, parsed.remote);
  if (!app.parse(arguments)) return kExitOk;

  filter_of(parsed);  // reports wrong ranks before anything else
  if (parsed.json && parsed.logs) throw ConfigError("--json and --logs: one of them");
  if (std::optional<Host> host = host_of_job_run(parsed)) return watch_there(*host, parsed);
  if (std::optional<Host> host = host_of(parsed.run)) return watch_there(*host, parsed);
  return parsed.logs ? watch_logs(parsed) : watch_here(parsed);
}

}  // namespace lockstep
