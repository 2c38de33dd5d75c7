#include "commands/hosts/fetch.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "commands/hosts/fetch_address.h"
#include "commands/shared/host_arguments.h"
#include "data/store/object_store.h"
#include "launch/fetch/fetch.h"
#include "launch/jobs/find_job.h"

namespace lockstep {

namespace {

struct FetchArguments {
  HostArguments hosts;
  std::string run, folder, checkpoints = "newest";
  fs::path to;
  bool logs_only = false;
};

bool is_absolute(const std::string& path) {
  return path.starts_with('/') || path == "~" || path.starts_with("~/");
}

CheckpointChoice choice_of(const std::string& word) {
  if (word == "all") return CheckpointChoice::kAll;
  return word == "none" ? CheckpointChoice::kNone : CheckpointChoice::kNewestAndBest;
}

// "runs/nmt" here as there; of an absolute path, which may be impossible here, its last part.
fs::path default_destination(const std::string& run) {
  fs::path path = run;
  if (path.filename().empty()) path = path.parent_path();
  return is_absolute(run) ? path.filename() : path;
}

// Where launch with the same --cwd, and launch --push, let the run be.
std::vector<std::string> folders_of(const FetchArguments& a) {
  if (is_absolute(a.run)) return {a.run};
  const std::string base = a.folder.empty()        ? fs::current_path().string()
                           : is_absolute(a.folder) ? a.folder
                                                   : fs::absolute(a.folder).string();
  std::vector<std::string> out = {base + "/" + a.run};
  const std::string pushed = folder_on_hosts(a.folder) + "/" + a.run;
  if (pushed != out.front()) out.push_back(pushed);
  return out;
}

// Where launch writes its events here.
fs::path launch_log_of(const FetchArguments& a) {
  const bool elsewhere = is_absolute(a.run) || a.folder.starts_with('~');
  return fs::path(elsewhere ? "" : a.folder) / a.run / "launch.jsonl";
}

// A host that is this machine must not be both ends.
void require_other_folder(const RunFetchOptions& options) {
  const auto is_here = [&](const std::string& folder) {
    std::error_code none;
    return fs::equivalent(in_home(folder), options.to, none) && !none;
  };
  if (std::none_of(options.folders.begin(), options.folders.end(), is_here)) return;
  for (const Host& host : options.hosts.hosts) {
    if (!is_this_machine(host)) continue;
    ConfigError error("{}: is the run's own folder, since {} is this machine", options.to.string(),
                      host.name);
    error.set_advice("--to another folder");
    throw error;
  }
}

class FetchProgress {
 public:
  explicit FetchProgress(bool shown) : shown_(shown) {}
  ~FetchProgress() {
    if (shown_) end_progress();
  }
  FetchProgress(const FetchProgress&) = delete;
  FetchProgress& operator=(const FetchProgress&) = delete;

  void show(int64_t moved, int64_t all) {
    constexpr std::chrono::milliseconds kEvery{500};
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < kEvery) return;
    last_ = now;
    show_progress(fmt::format("{} of {}", short_bytes(static_cast<double>(moved)),
                              short_bytes(static_cast<double>(all))));
  }

 private:
  bool shown_;
  std::chrono::steady_clock::time_point last_;
};

void describe_fetch(CommandLine& app, FetchArguments& a) {
  app.add_option("run", a.run,
                 "a job's id, with hosts the run's folder there, or a mirror's address")
      ->required();
  app.add_option("--to", a.to, "the folder here (default: as there)");
  app.add_option("--cwd", a.folder, "folder that the hosts work in, as of launch")->group("Hosts");
  app.add_option("--checkpoints", a.checkpoints, "newest: and the best by each metric; all; none")
      ->one_of({"newest", "all", "none"})
      ->capture_default_str();
  app.add_flag("--logs-only", a.logs_only, "the ranks' logs and the launcher's events alone");
  add_host_options(app, a.hosts);
}

// The job that is meant; nothing where a folder is.
std::optional<FoundJob> job_of(const FetchArguments& a, const HostList& hosts) {
  if (!hosts.hosts.empty() && (!is_job_id(a.run) || !a.folder.empty())) return std::nullopt;
  try {
    return find_job(a.run, hosts, a.hosts.remote);
  } catch (const ConfigError&) {
    if (hosts.hosts.empty()) throw;
    return std::nullopt;  // a folder may have such a name too
  }
}

// Says where the job's run is, and whose hosts have it.
void take_job(const FoundJob& job, RunFetchOptions& options) {
  const JobRecord& record = job.record;
  if (record.run_folder.empty()) {
    throw ConfigError("job {}: its command is no training, so there is no run to fetch", record.id);
  }
  options.remote = job.remote;
  options.folders = {record.run_folder};
  for (const FoundJob::Place& place : job.places) options.hosts.hosts.push_back(place.host);
  // "runs/nmt" of the job's working folder is "runs/nmt" here.
  const std::string base = record.folder + "/";
  options.to = record.run_folder.starts_with(base)
                   ? record.run_folder.substr(base.size())
                   : default_destination(record.run_folder).string();
}

void take_folder(const FetchArguments& a, RunFetchOptions& options) {
  options.hosts = require_hosts(a.hosts);
  options.remote = a.hosts.remote;
  options.folders = folders_of(a);
  options.launch_log = launch_log_of(a);
  options.to = default_destination(a.run);
}

}  // namespace

int fetch(const Arguments& arguments) {
  FetchArguments given;
  CommandLine app(
      "Brings the run folder of a run on hosts together here, also while the run goes on; called\n"
      "again, it moves what is new:\n"
      "lockstep fetch JOB [--to DIR]\n"
      "lockstep fetch -H a,b RUN_FOLDER [--cwd FOLDER] [--to DIR]\n"
      "lockstep fetch ADDRESS [--to DIR]        (of a run's checkpoint.mirror)",
      "lockstep fetch");
  describe_fetch(app, given);
  if (!app.parse(arguments)) return kExitOk;
  if (is_store_address(given.run)) {
    return fetch_address({.address = given.run,
                          .to = given.to,
                          .checkpoints = given.logs_only ? "none" : given.checkpoints});
  }
  RunFetchOptions options;
  if (const std::optional<FoundJob> job = job_of(given, read_hosts(given.hosts))) {
    take_job(*job, options);
  } else {
    take_folder(given, options);
  }
  if (!given.to.empty()) options.to = given.to;
  options.checkpoints = choice_of(given.checkpoints);
  options.logs_only = given.logs_only;
  options.on_note = [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  FetchProgress progress(isatty(STDERR_FILENO) == 1);
  options.on_progress = [&](int64_t moved, int64_t all) { progress.show(moved, all); };
  require_other_folder(options);
  const FetchSummary summary = fetch_run(options);
  if (!summary.checkpoints.empty()) {
    fmt::print("checkpoints: {}\n", join(summary.checkpoints, ", "));
  }
  fmt::print("{}: {} moved, {} files written; lockstep report {}\n", options.to.string(),
             short_bytes(static_cast<double>(summary.moved_bytes)), summary.written_files,
             options.to.string());
  return kExitOk;
}

}  // namespace lockstep
