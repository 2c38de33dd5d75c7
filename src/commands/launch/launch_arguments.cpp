#include "commands/launch/launch_arguments.h"

namespace lockstep {

namespace {

void describe_ranks(CommandLine& app, LaunchArguments& a) {
  app.add_option(
      "-n,--ranks", a.ranks,
      "how many processes (default 1; with hosts, their ranks); auto: a rank a GPU, else "
      "a NUMA node");
  app.add_option("--grace", a.grace, "seconds from SIGTERM to SIGKILL (default 10)");
  app.add_option("--output-dir", a.output_folder,
                 "file each rank's output here: rank00.out, rank00.err");
  app.add_option("--only-ranks", a.only_ranks, "show these ranks' output only: 0,3");
  app.add_flag("--pin", a.pin, "pin each rank to its own share of the cores");
  app.add_option("--program", a.program, "start this program instead of lockstep itself");
  app.add_option("-x,--export", a.exported, "NAME or NAME=VALUE for the ranks' environment")
      ->expected(1)
      ->take_all();
  app.add_option("--restarts", a.restarts,
                 "times to start again after failures without progress between them (default 0; 3 "
                 "for train over hosts)")
      ->non_negative();
}

void describe_hosts(CommandLine& app, LaunchArguments& a) {
  const char* group = "Hosts";
  app.add_option("--cwd", a.folder,
                 "folder to work in on every host, '~/...' below each home (default: this one; "
                 "~/lockstep/NAME with --push)")
      ->group(group);
  app.add_flag("--push", a.push,
               "first bring the program, the configuration and what it names to all hosts")
      ->group(group);
  app.add_option("--interface", a.interface, "network interface to talk over, on every host")
      ->group(group);
  app.add_option("--min-hosts", a.min_hosts, "go on with so many when others stay away")
      ->group(group)
      ->non_negative();
  app.add_option("--host-timeout", a.host_timeout,
                 "seconds for a host to answer before it counts as away (default 60)")
      ->group(group);
  app.add_option("--host-poll", a.host_poll,
                 "seconds between looks for a host that is away (default 10, growing)")
      ->group(group);
  app.add_option("--silence", a.silence,
                 "seconds without a sign of life that mean a host is lost (default 5)")
      ->group(group);
  app.add_option("--spot", a.spot,
                 "stop before the cloud takes a machine: auto (where there is one), no, aws, "
                 "google, azure")
      ->group(group);
  app.add_flag("--detach", a.detach, "the launcher runs on a host and goes on without this machine")
      ->group(group);
  app.add_option("--from", a.from, "with --detach: the host for the launcher (default: the first)")
      ->group(group);
  app.add_option("--instances-command", a.hosts.hosts.command,
                 "a command that prints the list of --instances; asked again while hosts are lost")
      ->group(group);
  app.add_option("--replacement-wait", a.replacement_wait,
                 "with --instances-command: seconds to wait for other hosts when there are too few "
                 "(default 1800)")
      ->group(group);
  app.add_flag("--find-hosts", a.find_hosts, "")->group("");
}

void describe_end(CommandLine& app, LaunchArguments& a) {
  const char* group = "The end of the run";
  app.add_option("--notify", a.notify,
                 "URL, shell command or @FILE with one of them: told of failures, lost hosts, the "
                 "budget and the end")
      ->group(group)
      ->expected(1)
      ->take_all();
  app.add_option("--then", a.then, "shell command to run once after a run that ended well")
      ->group(group);
  app.add_option("--price", a.price,
                 "of one host an hour: 0.526/h; of single ones and all others: a=0.9/h,0.526/h")
      ->group(group);
  app.add_option("--budget", a.budget,
                 "stop after a checkpoint before this is spent, over all launches of the run")
      ->group(group);
  app.add_flag("--power-off", a.power_off, "switch the hosts off once the run is safe elsewhere")
      ->group(group);
  app.add_flag("--power-off-anyway", a.power_anyway,
               "the same, also where only they have the newest checkpoint")
      ->group(group);
  app.add_option("--power-off-after", a.power_after,
                 "minutes without a launcher after which a host switches itself off (default 15)")
      ->group(group);
  app.add_option("--power-off-command", a.power_command,
                 "shell command that switches a host off (default: sudo -n systemctl poweroff)")
      ->group(group);
  app.add_option("--spent", a.spent, "")->group("");  // what `resume` knows of earlier launchers
  app.add_option("--job", a.job, "")->group("");      // what --detach starts on that host
}

}  // namespace

bool parse_launch(const Arguments& words, LaunchArguments& given) {
  CommandLine app(
      "Starts a command of lockstep as several ranks, on this machine or on hosts:\n"
      "lockstep launch -n RANKS|auto [options] -- COMMAND [arguments]\n"
      "lockstep launch -H a:2,b:2 [options] -- COMMAND [arguments]",
      "lockstep launch");
  describe_ranks(app, given);
  describe_hosts(app, given);
  describe_end(app, given);
  add_host_options(app, given.hosts);
  return app.parse(words);
}

Arguments options_for_host(const LaunchArguments& a) {
  const LaunchArguments defaults;
  Arguments out;
  const auto add = [&](const char* option, const auto& value, const auto& otherwise) {
    if (value != otherwise) out.insert(out.end(), {option, fmt::format("{}", value)});
  };
  add("--grace", a.grace, defaults.grace);
  add("--output-dir", a.output_folder, defaults.output_folder);
  add("--only-ranks", a.only_ranks, defaults.only_ranks);
  add("--program", a.program, defaults.program);
  add("--restarts", a.restarts, defaults.restarts);
  add("--interface", a.interface, defaults.interface);
  add("--min-hosts", a.min_hosts, defaults.min_hosts);
  add("--host-timeout", a.host_timeout, defaults.host_timeout);
  add("--host-poll", a.host_poll, defaults.host_poll);
  add("--silence", a.silence, defaults.silence);
  add("--spot", a.spot, defaults.spot);
  add("--then", a.then, defaults.then);
  add("--price", a.price, defaults.price);
  if (a.budget) add("--budget", *a.budget, 0.0);
  add("--power-off-after", a.power_after, defaults.power_after);
  add("--power-off-command", a.power_command, defaults.power_command);
  for (const std::string& word : a.notify) out.insert(out.end(), {"--notify", word});
  if (a.power_off) out.push_back("--power-off");
  if (a.power_anyway) out.push_back("--power-off-anyway");
  if (a.pin) out.push_back("--pin");
  return out;
}

}  // namespace lockstep
