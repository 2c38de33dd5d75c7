#include "commands/launch/launch.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "base/file.h"
#include "base/text.h"
#include "commands/hosts/detach.h"
#include "commands/launch/launch_arguments.h"
#include "commands/launch/launch_ending.h"
#include "commands/launch/push.h"
#include "commands/runs/train.h"
#include "config/source.h"
#include "dist/rank/launch_environment.h"
#include "launch/job/host_finder.h"
#include "launch/job/launcher.h"
#include "launch/job/rank_layout.h"
#include "launch/jobs/job_keeper.h"

namespace lockstep {

namespace {

constexpr double kDay = 86400;
constexpr int kRestartsOverHosts = 3;
constexpr int kMostRanks = 1 << 20;    // over all hosts
constexpr const char* kAuto = "auto";  // -n auto, run.device

int to_ranks(const std::string& text, int most) {
  int ranks = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (failed != std::errc() || end != text.data() + text.size() || ranks < 1 || ranks > most) {
    throw ConfigError("-n {}: expected a number of ranks from 1 to {}, or auto", text, most);
  }
  return ranks;
}

std::chrono::milliseconds to_time(const char* option, double seconds, double least = 0) {
  if (!(seconds >= least && seconds <= kDay)) {
    throw ConfigError("{} {}: expected seconds from {} to {}", option, seconds, least, kDay);
  }
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

std::vector<int> to_rank_list(const std::string& text, int ranks) {
  std::vector<int> out;
  if (text.empty()) return out;
  for (const std::string& word : split(text, ',')) {
    int rank = -1;
    auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), rank);
    bool whole = failed == std::errc() && end == word.data() + word.size();
    if (!whole || rank < 0 || rank >= ranks) {
      throw ConfigError("--only-ranks {}: expected ranks from 0 to {}, as 0,3", text, ranks - 1);
    }
    out.push_back(rank);
  }
  return out;
}

// -x NAME takes the value from our environment.
std::vector<std::string> to_environment(const std::vector<std::string>& exported) {
  std::vector<std::string> out;
  for (const std::string& word : exported) {
    if (word.empty() || word[0] == '=') {
      throw ConfigError("-x {}: expected NAME or NAME=VALUE", word);
    }
    if (word.find('=') != std::string::npos) {
      out.push_back(word);
    } else if (const char* value = std::getenv(word.c_str())) {
      out.push_back(word + "=" + value);
    } else {
      throw ConfigError("-x {}: not set here; -x {}=VALUE sets it", word, word);
    }
  }
  return out;
}

// Variables that change what ranks compute or how they communicate are sent to all hosts.
void add_travelling_variables(std::vector<std::string>& out) {
  const std::vector<std::string>& cleared = clear_list();
  for (char** entry = environ; *entry; ++entry) {
    std::string_view text = *entry;
    std::string_view name = text.substr(0, text.find('='));
    if (!travels(name) || std::find(cleared.begin(), cleared.end(), name) != cleared.end())
      continue;
    out.emplace_back(text);
  }
}

void add_hosts(const LaunchArguments& a, Launch& launch) {
  HostArguments hosts = a.hosts;
  if (a.ranks == kAuto) hosts.hosts.otherwise_slots = kAutoSlots;
  launch.hosts = read_hosts(hosts);
  if (launch.hosts.hosts.empty()) {
    if (!a.interface.empty()) throw ConfigError("--interface {}: no hosts are given", a.interface);
    if (a.min_hosts > 0) throw ConfigError("--min-hosts {}: no hosts are given", a.min_hosts);
    if (a.push) throw ConfigError("--push: no hosts are given; -H a,b names some");
    if (a.ranks != kAuto) launch.ranks = to_ranks(a.ranks.empty() ? "1" : a.ranks, kMostLocalRanks);
    return;
  }
  if (!a.ranks.empty() && a.ranks != kAuto) to_ranks(a.ranks, kMostRanks);
  auto count = static_cast<int>(launch.hosts.hosts.size());
  if (a.min_hosts > count) {
    throw ConfigError("--min-hosts {}: there are {} hosts", a.min_hosts, count);
  }
  launch.remote = a.hosts.remote;
  launch.interface = a.interface;
  const bool as_given = a.folder.starts_with('~');  // below each host's home
  launch.folder = a.folder.empty() ? fs::current_path().string()
                  : as_given       ? a.folder
                                   : fs::absolute(a.folder).string();
  add_travelling_variables(launch.environment);
}

void add_supervision(const LaunchArguments& a, bool trains, Launch& launch) {
  SupervisorOptions& s = launch.supervision;
  bool hosts = !launch.hosts.hosts.empty();
  bool survives = hosts && (trains || a.min_hosts > 0);
  s.restarts = a.restarts >= 0 ? a.restarts : survives ? kRestartsOverHosts : 0;
  s.min_hosts = a.min_hosts;
  s.grace = to_time("--grace", a.grace);
  s.host_timeout = to_time("--host-timeout", a.host_timeout);
  s.poll = to_time("--host-poll", a.host_poll, 0.1);
  launch.silence = to_time("--silence", a.silence, 1);
  if (!a.hosts.hosts.command.empty()) {
    s.replacement_wait = to_time("--replacement-wait", a.replacement_wait);
    launch.finder.every = s.poll;
  }
  if (a.spot != "auto") cloud_of_name(a.spot);
  const char* metadata = std::getenv("LOCKSTEP_METADATA");
  launch.spot = {.cloud = a.spot, .metadata = metadata == nullptr ? "" : metadata};
}

struct RunFacts {
  std::string device = kAuto, folder;  // run.device, run.folder
  bool mirrored = false;               // checkpoint.mirror
};

// Finds what the launcher must know of a run: errors of its configuration are reported before
// anything starts, its events go to its folder, and each of its ranks may need a GPU.
RunFacts add_run(const LaunchArguments& a, const Arguments& command, Launch& launch) {
  std::optional<RunConfig> config = config_of_train({command.begin() + 1, command.end()});
  if (!config) return {};
  launch.needs_gpus = config->run.device == "cuda" && !config->comm.shares_gpus();
  if (!config->run.folder.empty()) {
    std::filesystem::path folder = config->run.folder;
    // With --push the hosts' folders are not this one; what the launcher notes lies here.
    if (!a.folder.empty() && !a.push && !a.folder.starts_with('~')) {
      folder = std::filesystem::path(a.folder) / folder;
    }
    launch.events = folder / "launch.jsonl";
  }
  return {config->run.device, config->run.folder, !config->checkpoint.mirror.empty()};
}

// Returns where a lockstep command that uses a run computes: as its words say, else as the run's
// folder says.
std::string device_of(const Arguments& command) {
  constexpr std::string_view kKey = "run.device=";
  std::string out = kAuto;
  std::error_code none;
  for (const std::string& word : command) {
    const fs::path config = fs::path(word) / "config.toml";
    if (fs::is_regular_file(config, none)) {
      out = ConfigSource::from_file(config).name_at("run.device", out);
    } else if (word.starts_with(kKey)) {
      return word.substr(kKey.size());
    }
  }
  return out;
}

// Brings the job to its hosts; what follows works with it as they have it.
void push(const LaunchArguments& a, Launch& launch, Arguments& command, RunFacts& run) {
  JobOnHosts job = push_job({.hosts = launch.hosts,
                             .remote = launch.remote,
                             .folder = a.folder,
                             .min_hosts = a.min_hosts,
                             .command = a.program.empty() ? command : Arguments()});
  launch.hosts = std::move(job.hosts);
  launch.folder = std::move(job.folder);
  launch.remote.program = std::move(job.program);
  if (a.program.empty()) command = std::move(job.command);
  if (!run.folder.empty()) run.folder = std::move(job.run_folder);
  if (job.turn == nullptr) return;
  launch.on_event = [turn = job.turn](const LaunchEvent& event) {
    if (event.event == "first_step") turn->end();
  };
}

int threads_given(const Launch& launch) {
  constexpr std::string_view kName = "OMP_NUM_THREADS=";
  for (const std::string& entry : launch.environment) {
    if (entry.starts_with(kName)) return std::atoi(entry.c_str() + kName.size());
  }
  const char* ours = std::getenv("OMP_NUM_THREADS");
  return ours == nullptr ? 0 : std::atoi(ours);
}

// Comes last before the start: asks the machines where "auto" leaves the choice to them.
void settle_ranks(const LaunchArguments& a, const std::string& device, Launch& launch) {
  const LayoutWishes wishes{.gpus = device != "cpu", .threads = threads_given(launch)};
  if (launch.hosts.hosts.empty()) {
    if (a.ranks != kAuto) return;
    const RankLayout layout = layout_of_this_machine(wishes);
    launch.ranks = layout.ranks;
    launch.pin |= layout.pin;
    fmt::print(stderr, "lockstep launch: {}\n", layout.text());
    return;
  }
  for (const std::string& line : settle_slots(launch.hosts, launch.remote, wishes, a.min_hosts)) {
    fmt::print(stderr, "lockstep launch: {}\n", line);
  }
  launch.ranks = launch.hosts.ranks();
  if (a.ranks.empty() || a.ranks == kAuto || to_ranks(a.ranks, kMostRanks) == launch.ranks) return;
  throw ConfigError("-n {}: but the hosts of {} have {} ranks", a.ranks, launch.hosts.source,
                    launch.ranks);
}

[[noreturn]] void fail(const LaunchOutcome& outcome) {
  Error error(outcome.exit_code, outcome.message);
  error.set_advice(outcome.advice);
  throw error;
}

void check_detach(const LaunchArguments& a, const Launch& launch) {
  if (!a.from.empty() && !a.detach) throw ConfigError("--from {}: only with --detach", a.from);
  if (!a.detach) return;
  if (launch.hosts.hosts.empty()) throw ConfigError("--detach: no hosts are given");
  if (!a.hosts.hosts.command.empty()) {
    ConfigError error("--instances-command: not with --detach");
    error.set_cause("machines that come later do not have the job's key");
    error.set_advice("--instances FILE, or lockstep launch without --detach");
    throw error;
  }
  if (!a.from.empty()) check_from(a.from, launch.hosts);
}

// The launcher of a detached job gets hosts, folder and environment from its record.
void add_job(const JobKeeper& job, Launch& launch) {
  launch.hosts = job.hosts();
  launch.remote = job.remote();
  launch.agent_words = job.agent_words();
  launch.folder = job.record().folder;
  launch.environment = job.record().environment;
}

// Makes sense of the words; starts nothing. `job`: the job whose launcher this is, or null.
std::pair<Launch, RunFacts> to_launch(const LaunchArguments& given, Arguments command,
                                      const JobKeeper* job) {
  Launch launch;
  launch.pin = given.pin;
  launch.environment = to_environment(given.exported);
  if (job != nullptr) {
    launch.interface = given.interface;
    add_job(*job, launch);
  } else {
    add_hosts(given, launch);
  }
  check_detach(given, launch);
  const bool trains = given.program.empty() && !command.empty() && command.front() == "train";
  add_supervision(given, trains, launch);
  launch.output.folder = given.output_folder;
  if (command.empty() && given.program.empty()) {
    throw ConfigError("nothing to launch: lockstep launch -n {} -- train CONFIG",
                      given.ranks.empty() ? kAuto : given.ranks);
  }
  if (!given.output_folder.empty()) launch.events = fs::path(given.output_folder) / "launch.jsonl";
  RunFacts run;
  if (trains) {
    run = add_run(given, command, launch);
  } else if (given.program.empty()) {
    run.device = device_of(command);
  }
  launch.ending = ending_of(
      given, launch,
      {.run = run.folder, .mirrored = run.mirrored, .detached = given.detach || job != nullptr});
  if (given.push && job == nullptr) push(given, launch, command, run);
  settle_ranks(given, run.device, launch);
  if (!run.folder.empty()) {
    launch.ending.run = (fs::path(launch.folder) / run.folder).lexically_normal().string();
  }
  launch.output.only_ranks = to_rank_list(given.only_ranks, launch.ranks);
  launch.command = {given.program};
  if (given.program.empty() && launch.hosts.hosts.empty()) {
    launch.command = {fs::read_symlink("/proc/self/exe").string()};
  }
  launch.command.insert(launch.command.end(), command.begin(), command.end());
  return {std::move(launch), std::move(run)};
}

// Runs as the launcher of a job that was detached, on one of its hosts, in its working folder.
LaunchOutcome launch_job(const std::string& id) {
  JobKeeper job(id);
  try {
    LaunchArguments given;
    parse_launch(job.record().options, given);
    Launch launch = to_launch(given, job.record().command, &job).first;
    launch.on_event = [&job](const LaunchEvent& event) {
      try {
        if (event.event == "start") job.ranks_run();
        if (event.event == "first_step") job.step_done();
      } catch (const Error& error) {  // a full disk: the job goes on, its record does not
        fmt::print(stderr, "lockstep launch: {}\n", error.what());
      }
    };
    LaunchOutcome outcome = run_launch(launch);
    job.end(outcome.exit_code, outcome.message);
    return outcome;
  } catch (const Error& error) {
    job.end(error.exit_code(), error.describe());
    throw;
  }
}

// What the id of a job begins with.
std::string job_name(const Launch& launch, const RunFacts& run) {
  if (!run.folder.empty()) return (fs::path(run.folder) / "").parent_path().filename().string();
  const std::string& program = launch.command.front();
  if (!program.empty()) return fs::path(program).filename().string();
  return launch.command.at(1);
}

// Runs for a launcher that lacks hosts: reads those that it knows, asks what machines there are,
// makes new ones ready and prints them.
int find_hosts(const LaunchArguments& given, const Arguments& command) {
  const std::string known{std::istreambuf_iterator<char>(std::cin), {}};
  HostList list = read_hosts(given.hosts);
  list.hosts = unknown_hosts(list.hosts, hosts_of_text(known));
  if (given.push && !list.hosts.empty()) {
    list = push_job({.hosts = list,
                     .remote = given.hosts.remote,
                     .folder = given.folder,
                     .min_hosts = 1,
                     .joins = true,
                     .command = given.program.empty() ? command : Arguments()})
               .hosts;
  }
  fmt::print("{}\n", hosts_text(list.hosts));
  return kExitOk;
}

// Each of several launchers would start all ranks: a batch system or mpirun was asked to start
// tasks, which shall be the ranks themselves. RANK and WORLD_SIZE alone say too little: pods have
// them whatever runs there.
void refuse_several_launchers() {
  LaunchEnvironment here;
  try {
    here = detect_launch_environment();
  } catch (const ConfigError&) {  // of a batch script, for instance: one process
    return;
  }
  if (here.size == 1 || here.launcher == "lockstep" || here.launcher == "torchrun") return;
  ConfigError error("lockstep launch: {} started it {} times", here.launcher, here.size);
  error.set_advice(
      "without lockstep launch: the tasks are the ranks of lockstep train; or one task");
  throw error;
}

}  // namespace

int launch(const Arguments& arguments) {
  auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  LaunchArguments given;
  if (!parse_launch(Arguments(arguments.begin(), dashes), given)) return kExitOk;
  if (dashes != arguments.end()) ++dashes;
  const Arguments command(dashes, arguments.end());
  if (given.find_hosts) return find_hosts(given, command);
  refuse_several_launchers();
  LaunchOutcome outcome;
  if (!given.job.empty()) {
    outcome = launch_job(given.job);
  } else {
    auto [launch, run] = to_launch(given, command, nullptr);
    if (!given.hosts.hosts.command.empty()) {
      launch.finder.words = {fs::read_symlink("/proc/self/exe").string(), "launch", "--find-hosts"};
      launch.finder.words.insert(launch.finder.words.end(), arguments.begin(), arguments.end());
    }
    if (given.detach) {
      settle_ending(given, launch.ending, launch.hosts);
      return launch_detached(launch, {.from = given.from,
                                      .options = options_for_host(given),
                                      .name = job_name(launch, run),
                                      .run_folder = run.folder,
                                      .min_hosts = given.min_hosts});
    }
    outcome = run_launch(launch);
  }
  if (outcome.exit_code != kExitOk) fail(outcome);
  return kExitOk;
}

}  // namespace lockstep
