#include "commands/launch/push.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "commands/runs/train.h"
#include "config/recipe.h"
#include "launch/hosts/host_setup.h"
#include "launch/push/held_files.h"
#include "launch/push/push_plan.h"

namespace lockstep {

namespace {

void say(const std::string& line) { fmt::print(stderr, "lockstep launch: {}\n", line); }

bool trains(const Arguments& command) { return !command.empty() && command.front() == "train"; }

// Says what goes where, and what else is meant on the hosts.
void show(const PushPlan& plan, const JobOnHosts& job) {
  for (const JobInput& input : plan.inputs) {
    const std::string name = input.key.empty() ? input.value : input.key + " = " + input.value;
    if (!input.sent) {
      say(fmt::format("{}: not here, so the hosts must have it", name));
    } else {
      say(fmt::format("{}: {}{} in {}{}", name,
                      input.files > 1 ? fmt::format("{} files, ", with_commas(input.files)) : "",
                      short_bytes(static_cast<double>(input.bytes)), job.folder,
                      input.moved() ? " as " + input.there : ""));
    }
  }
}

// Writes the words so that paths are those of the hosts: the configuration's name is another where
// it lies elsewhere or is a recipe's, and later words win.
void translate_words(const PushPlan& plan, const RunConfig& config, JobOnHosts& job) {
  Arguments& command = job.command;
  const std::string file = file_of_train({command.begin() + 1, command.end()});
  *std::find(command.begin() + 1, command.end(), file) = plan.inputs.front().there;
  for (const JobInput& input : plan.inputs) {
    if (!input.key.empty() && input.moved()) {
      command.push_back(path_setting(input.key, input.there));
    }
  }
  const fs::path run = config.run.folder;
  const std::string within = run.is_absolute() ? path_within(fs::current_path(), run) : "";
  job.run_folder = within.empty() ? run.string() : within;
  if (!within.empty()) command.push_back(path_setting("run.folder", within));
}

// Returns the plan of a training, and changes the job's words accordingly; nothing for other
// commands.
std::optional<PushPlan> plan_of(JobOnHosts& job) {
  if (!trains(job.command)) return std::nullopt;
  const Arguments words(job.command.begin() + 1, job.command.end());
  std::optional<RunConfig> config = config_of_train(words);
  if (!config) return std::nullopt;
  InputPaths inputs;
  config->describe(inputs);
  const std::string file = file_of_train(words);
  KnownHashes hashes;
  PushPlan plan = plan_push({.folder = fs::current_path(),
                             .configuration = find_recipe(file).value_or(file),
                             .inputs = inputs.entries(),
                             .run_folder = config->run.folder},
                            hashes);
  translate_words(plan, *config, job);
  return plan;
}

// Returns what is wrong with a host's files so that the job cannot start; empty: nothing.
std::string trouble_with(const HeldFiles& held, const PushPlan& plan, const Host& host) {
  if (!held.absent.empty()) {
    const auto of_path = [&](const JobInput& input) { return input.value == held.absent.front(); };
    const auto input = std::find_if(plan.inputs.begin(), plan.inputs.end(), of_path);
    return fmt::format("{}: {} = {} is neither here nor there", host.name,
                       input == plan.inputs.end() ? "" : input->key, held.absent.front());
  }
  if (held.used.empty()) return "";
  return fmt::format("{}: a job that runs there (process {}) reads {}, which is another now",
                     host.name, held.used.front().pid, held.used.front().path);
}

void send_files(const PushPlan& plan, const JobOnHosts& job, HostSetup& setup) {
  std::vector<std::string> elsewhere;
  for (const JobInput& input : plan.inputs) {
    if (!input.sent) elsewhere.push_back(input.value);
  }
  TemporaryFolder question;
  write_file(question.path() / "question", question_text(plan.pieces, elsewhere));
  RemoteOptions remote{.program = job.program};
  std::vector<HostSetup::Lack> lacks;
  for (const HostSetup::Answer& answer :
       setup.ask("looking at " + job.folder, lockstep_text(remote, {"files", "--in", job.folder}),
                 {"cat", (question.path() / "question").string()})) {
    const HeldFiles held = read_answer(answer.output);
    const std::string trouble = trouble_with(held, plan, *answer.host);
    if (!trouble.empty()) {
      MachineError error("{}", trouble);
      error.set_advice(held.absent.empty()
                           ? "--cwd '~/lockstep/another', or wait for that job's end"
                           : "bring it there, or correct the path");
      setup.fail(*answer.host, std::move(error));
      continue;
    }
    HostSetup::Lack lack{answer.host, {}, held.free_bytes};
    lack.paths.insert(held.missing.begin(), held.missing.end());
    lack.paths.insert(held.changed.begin(), held.changed.end());
    for (const std::string& path : held.changed) {
      setup.note(*answer.host, fmt::format("{} has other contents there: sent again", path));
    }
    lacks.push_back(std::move(lack));
  }
  setup.send({.name = job.folder, .folder = job.folder, .pieces = plan.pieces}, lacks);
}

void require_enough(const HostSetup& setup, const PushWishes& wishes) {
  const std::size_t all = wishes.hosts.hosts.size(), left = all - setup.failures().size();
  const std::size_t least = wishes.min_hosts > 0 ? static_cast<std::size_t>(wishes.min_hosts) : all;
  if (left < least) setup.throw_failures();
}

// Takes out the hosts that failed, where enough others are left.
void leave_out(const HostSetup& setup, JobOnHosts& job) {
  for (const HostSetup::Failure& failure : setup.failures()) {
    say(fmt::format("left out: {}", failure.error.describe()));
    std::erase_if(job.hosts.hosts,
                  [&](const Host& host) { return host.name == failure.host->name; });
  }
}

}  // namespace

JobOnHosts push_job(const PushWishes& wishes) {
  JobOnHosts job{.hosts = wishes.hosts,
                 .folder = folder_on_hosts(wishes.folder),
                 .program = wishes.remote.program,
                 .command = wishes.command,
                 .run_folder = "",
                 .turn = nullptr};
  if (trains(job.command) && !wishes.joins) {
    job.turn = std::make_shared<PushTurn>(job.hosts.hosts, job.folder);
  }
  const std::optional<PushPlan> plan = plan_of(job);
  if (plan) show(*plan, job);
  HostSetup::Options options{.remote = wishes.remote, .log_folder = ""};
  options.on_note = [](const Host& host, std::string_view line) {
    say(fmt::format("{}: {}", host.name, line));
  };
  HostSetup setup(wishes.hosts, options);
  if (job.program.empty()) {
    const ProgramFiles program = program_files(false);
    setup.install_program(program);
    job.program = fmt::format("~/.lockstep/{}/lockstep", program.hash);
    require_enough(setup, wishes);
  }
  if (plan) send_files(*plan, job, setup);
  require_enough(setup, wishes);
  leave_out(setup, job);
  return job;
}

}  // namespace lockstep
