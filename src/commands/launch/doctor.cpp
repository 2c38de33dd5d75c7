#include "commands/launch/doctor.h"

#include "commands/process/process_setup.h"
#include "commands/shared/host_arguments.h"
#include "launch/doctor/doctor.h"
#include "train/config/precision.h"
#include "train/config/run_config.h"

namespace lockstep {

namespace {

// Measures the network on no device, by sizes only. Where the corpus cannot be opened here, the
// sizes stay unknown, and the checks of the hosts say why.
void measure_needs(RunConfig& config, DoctorNeeds& needs) {
  try {
    prepare_process(LaunchEnvironment{});
    TaskContext context;
    RunSection run = config.run;
    settle_precision(run, false, 0);
    context.numerics = choose_numerics(run);
    config.task->open(context);
  } catch (const DataError&) {
    return;
  }
  const auto bytes = static_cast<int64_t>(config.task->parameters().gradients().nbytes());
  needs.gradient_bytes = bytes;
  // Weights, gradients and two moments; a 16-bit copy; a moving average; and the process with
  // torch.
  constexpr int64_t kProcess = 200'000'000;
  const bool low = config.run.precision != "fp32";
  const bool average = config.training.average_decay > 0;
  const int64_t checkpoint = bytes * (average ? 4 : 3);
  needs.memory_bytes = kProcess + 4 * bytes + (low ? bytes / 2 : 0) + (average ? bytes : 0);
  int64_t kept = config.checkpoint.keep + 1;  // includes the one being written
  if (config.evaluation.is_on()) {
    kept += config.checkpoint.keep_best * static_cast<int64_t>(config.evaluation.metrics.size());
  }
  needs.disk_bytes = checkpoint * kept;
}

// `folder`: --cwd.
DoctorNeeds read_needs(std::vector<std::string> words, const std::string& folder) {
  DoctorNeeds needs;
  const std::vector<std::string> settings = take_settings(words);
  if (words.empty() && settings.empty()) return needs;
  if (words.size() != 1) {
    throw ConfigError(
        "doctor: expected one configuration file, or none, got {} and {} key=value "
        "words",
        words.size(), settings.size());
  }
  needs.config = words.front();
  needs.folder = folder.empty() ? fs::current_path().string() : folder;
  RunConfig config = read_run_config(needs.config, settings);
  needs.run_folder = config.run.folder;
  needs.device = config.run.device;
  needs.shares_gpus = config.comm.shares_gpus();
  needs.precision = config.run.precision;
  needs.corpus = ConfigSource::from_text(config.to_toml(), "config").name_at("data.corpus", "");
  measure_needs(config, needs);
  return needs;
}

}  // namespace

int doctor(const Arguments& arguments) {
  std::vector<std::string> words;
  HostArguments host_arguments;
  std::string folder;
  bool json = false;
  CommandLine app("Examines the hosts of a run, or this machine: would it work, would it be fast?",
                  "lockstep doctor");
  app.add_option("words", words, "CONFIG.toml and key=value words: what the run would be");
  add_host_options(app, host_arguments);
  app.add_option("--cwd", folder,
                 "folder to work in on every host, as of launch (default: this one)")
      ->group("Hosts");
  app.add_flag("--json", json, "print JSON (docs/before-a-run.md)");
  if (!app.parse(arguments)) return kExitOk;

  const HostList hosts = read_hosts(host_arguments);
  const DoctorNeeds needs = read_needs(words, folder);
  const DoctorReport report = examine(hosts, host_arguments.remote, needs);
  fmt::print("{}", json ? to_json(report).dump(1) + "\n" : doctor_text(report));
  return report.worst() == Judgement::kFail ? kExitMachine : kExitOk;
}

}  // namespace lockstep
