#include "commands/launch/plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "commands/process/process_setup.h"
#include "commands/shared/host_arguments.h"
#include "config/source.h"
#include "launch/job/rank_layout.h"
#include "launch/plan/plan.h"
#include "launch/plan/plan_measure.h"
#include "train/config/run_config.h"
#include "train/listeners/plan_check.h"

namespace lockstep {

namespace {

struct PlanArguments {
  std::vector<std::string> words;
  HostArguments hosts;
  std::string bandwidth, latency, price, out, folder;
  double step_seconds = 0, evaluation_seconds = -1;
  int steps = 8, assumed_hosts = 0;
  bool json = false, save = false;

  bool link_given() const { return !bandwidth.empty() || !latency.empty(); }
};

void check(const PlanArguments& a, const HostList& hosts) {
  if (a.words.size() != 1) {
    throw ConfigError("plan: expected one configuration file and key=value words, got {} files",
                      a.words.size());
  }
  if (a.bandwidth.empty() != a.latency.empty()) {
    throw ConfigError("--bandwidth and --latency: expected both or none of them");
  }
  if (a.assumed_hosts > 0 && !hosts.hosts.empty()) {
    throw ConfigError("--hosts-assumed and hosts by name: expected one of them");
  }
  if (a.assumed_hosts > 1 && !a.link_given()) {
    throw ConfigError(
        "--hosts-assumed {}: their network cannot be measured; expected --bandwidth "
        "and --latency",
        a.assumed_hosts);
  }
}

// Returns how many items an evaluation decodes: the limit, or all of the split.
int64_t evaluated_items(const RunConfig& config) {
  const EvaluationSection& evaluation = config.evaluation;
  if (evaluation.limit > 0 || !evaluation.is_on()) return evaluation.limit;
  return config.task->configured_items(evaluation.split);
}

std::vector<std::string> names_of(const HostList& hosts, int assumed) {
  std::vector<std::string> out;
  for (const Host& host : hosts.hosts) out.push_back(host.name);
  for (int i = 1; i <= assumed; ++i) out.push_back(fmt::format("host{}", i));
  if (out.empty()) out.push_back("this machine");
  return out;
}

int ranks_per_host(const HostList& hosts, const HostArguments& arguments) {
  if (hosts.hosts.empty()) return std::max(1, arguments.hosts.ranks_per_host);
  const int slots = hosts.hosts.front().slots;
  for (const Host& host : hosts.hosts) {
    if (host.slots != slots) {
      throw ConfigError(
          "{} has {} ranks and {} has {}: a plan needs as many on each host "
          "(--ranks-per-host N)",
          hosts.hosts.front().name, slots, host.name, host.slots);
    }
  }
  return slots;
}

// Makes a rank's part of a step half as large: by twice the ranks, or where the step follows these
// by half of batch.per_rank.
void halve_work(RunConfig& config, ComputeRequest& request) {
  const std::optional<StepSizeKeys> size = config.task->step_size_keys();
  if (!size || !size->per_rank->is_on()) {
    request.of_ranks *= 2;
    return;
  }
  const int64_t half = std::max<int64_t>(1, size->per_rank->per_rank / 2);
  request.words.push_back(fmt::format("batch.per_rank={}", half));
}

void measure_steps(const PlanArguments& arguments, const HostList& hosts, RunConfig& config,
                   PlanInputs& inputs) {
  ComputeRequest request{
      .remote = arguments.hosts.remote,
      .folder = arguments.folder.empty() ? fs::current_path().string() : arguments.folder,
      .words = inputs.words,
      .ranks = inputs.ranks_per_host,
      .of_ranks = static_cast<int>(inputs.hosts.size()) * inputs.ranks_per_host,
      .steps = arguments.steps};
  request.words.insert(request.words.begin(), inputs.config);
  if (hosts.hosts.empty()) {
    request.host = {.name = "this machine", .address = "127.0.0.1"};
  } else {
    request.host = hosts.hosts.front();
  }
  log_info("taking steps on {}: {} of {} ranks", request.host.name, request.ranks,
           request.of_ranks);
  if (arguments.step_seconds > 0) {
    request.steps = 1;
    request.warming_steps = 1;
    inputs.facts = measure_compute(request);
    inputs.compute = compute_model_from(arguments.step_seconds, inputs.facts);
    inputs.compute_source =
        fmt::format("{:.3f} s a step of passes and update, as given", arguments.step_seconds);
    return;
  }
  inputs.facts = measure_compute(request);
  // Measures half the work as well, to separate what grows with the work from what does not.
  halve_work(config, request);
  log_info("taking steps of half as many targets");
  inputs.compute = make_compute_model(inputs.facts, measure_compute(request));
  inputs.compute_source = fmt::format("{} + {} steps measured on {}", arguments.steps,
                                      arguments.steps, request.host.name);
}

void find_link(const PlanArguments& arguments, const HostList& hosts, PlanInputs& inputs) {
  if (arguments.link_given()) {
    inputs.link_source = "as given";
    return;
  }
  if (hosts.hosts.size() < 2) return;
  log_info("measuring sums between {} hosts", hosts.hosts.size());
  ProbedHosts probed(hosts, arguments.hosts.remote);
  probed.ask_facts(nlohmann::ordered_json::object(), std::chrono::seconds(20));
  for (const ProbedHost& host : probed.all()) {
    if (host.failure) throw *host.failure;
    if (host.address.empty()) {
      MachineError error("{}: no address of it was found that the others could reach",
                         host.host().name);
      error.set_advice("lockstep doctor, or address=... in a hosts file");
      throw error;
    }
  }
  const MeasuredLink measured = measure_network(probed, inputs.compute, inputs.lanes());
  inputs.link = measured.link;
  inputs.link_at_least = hides_transfer(measured.small, measured.large);
  inputs.link_source = fmt::format(
      "fitted on sums of {} ({:.2f} ms) and {} ({:.2f} ms) among {} hosts",
      short_bytes(measured.small.bytes), measured.small.seconds * 1e3,
      short_bytes(measured.large.bytes), measured.large.seconds * 1e3, hosts.hosts.size());
}

void add_options(CommandLine& app, PlanArguments& a) {
  app.add_option("words", a.words, "CONFIG.toml and key=value words, as for train");
  add_host_options(app, a.hosts);
  app.add_option("--cwd", a.folder,
                 "folder to work in on every host, as of launch (default: this one)")
      ->group("Hosts");
  app.add_option("--hosts-assumed", a.assumed_hosts,
                 "plan for so many hosts that are not there yet")
      ->positive();
  app.add_option("--bandwidth", a.bandwidth, "of each host, instead of measuring: 1gbit, 12.5MB/s");
  app.add_option("--latency", a.latency, "of one message between hosts (half a ping): 0.1ms");
  app.add_option("--step-seconds", a.step_seconds,
                 "compute of a step as known from elsewhere, instead of measuring")
      ->positive();
  app.add_option("--evaluation-seconds", a.evaluation_seconds,
                 "one evaluation on one host, instead of measuring");
  app.add_option("--steps", a.steps, "steps to measure, twice (default 8)")->range(2, 1000);
  app.add_option("--price", a.price, "of one host an hour: 0.526/h");
  app.add_flag("--json", a.json, "print plan.json instead of text");
  app.add_option("--out", a.out, "write plan.json to this file");
  app.add_flag("--save", a.save, "write plan.json into the run folder, where the run finds it");
}

}  // namespace

int plan(const Arguments& arguments) {
  PlanArguments parsed;
  CommandLine app("Predicts step time, traffic, memory and cost of a run from a few real steps.",
                  "lockstep plan");
  add_options(app, parsed);
  if (!app.parse(arguments)) return kExitOk;

  PlanInputs inputs;
  inputs.words = take_settings(parsed.words);
  HostList hosts = read_hosts(parsed.hosts);
  check(parsed, hosts);
  inputs.config = parsed.words.front();
  inputs.hosts = names_of(hosts, parsed.assumed_hosts);
  inputs.cores_per_host = usable_threads();
  inputs.evaluation_seconds = parsed.evaluation_seconds;
  if (!parsed.price.empty()) inputs.price_per_hour = parse_price(parsed.price, "--price");
  if (parsed.link_given()) {
    inputs.link = {.latency_seconds = parse_delay(parsed.latency, "--latency"),
                   .bytes_per_second = parse_bandwidth(parsed.bandwidth, "--bandwidth")};
  }
  RunConfig config = read_run_config(inputs.config, inputs.words);
  if (parsed.save && config.run.folder.empty()) {
    throw ConfigError("--save: run.folder is not set; --out FILE writes the plan elsewhere");
  }
  configure_log({});
  settle_slots(hosts, parsed.hosts.remote, {.gpus = config.run.device != "cpu"});
  inputs.ranks_per_host = ranks_per_host(hosts, parsed.hosts);
  inputs.evaluated_items = evaluated_items(config);

  measure_steps(parsed, hosts, config, inputs);
  find_link(parsed, hosts, inputs);
  const Plan made = make_plan(std::move(inputs));
  const std::string text = to_json(made).dump(1) + "\n";
  fmt::print("{}", parsed.json ? text : plan_report(made));
  if (!parsed.out.empty()) write_file(parsed.out, text);
  if (parsed.save) {
    fs::create_directories(config.run.folder);
    write_file(fs::path(config.run.folder) / kPlanName, text);
  }
  return kExitOk;
}

}  // namespace lockstep
