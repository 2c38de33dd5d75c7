#include "commands/launch.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "launch/local_launcher.h"

namespace lockstep {

namespace {

int to_ranks(const std::string& text) {
  int ranks = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (failed != std::errc() || end != text.data() + text.size() || ranks < 1 ||
      ranks > kMostLocalRanks) {
    throw ConfigError("-n {}: expected a number of ranks from 1 to {}", text, kMostLocalRanks);
  }
  return ranks;
}

std::chrono::milliseconds to_grace(double seconds) {
  constexpr double kDay = 86400;
  if (!(seconds >= 0 && seconds <= kDay)) {
    throw ConfigError("--grace {}: expected seconds from 0 to {}", seconds, kDay);
  }
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

[[noreturn]] void fail(const LaunchOutcome& outcome) {
  Error error(outcome.exit_code, outcome.message);
  error.set_advice(outcome.advice);
  throw error;
}

}  // namespace

int launch(const Arguments& arguments) {
  auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  std::string ranks = "1", program, folder;
  double grace_seconds = 10;
  LocalLaunch launch;
  CLI::App app(
      "Starts a command of lockstep as several ranks on this machine:\n"
      "lockstep launch -n RANKS [options] -- COMMAND [arguments]",
      "lockstep launch");
  app.add_option("-n,--ranks", ranks, "how many processes (default 1)");
  app.add_option("--grace", grace_seconds, "seconds from SIGTERM to SIGKILL (default 10)");
  app.add_option("--output-dir", folder, "file each rank's output here: rank00.out, rank00.err");
  app.add_flag("--pin", launch.pin, "pin each rank to its own share of the cores");
  app.add_option("--program", program, "start this program instead of lockstep itself");
  if (!parse_arguments(app, Arguments(arguments.begin(), dashes))) return kExitOk;

  launch.ranks = to_ranks(ranks);
  launch.grace = to_grace(grace_seconds);
  launch.output.folder = folder;
  launch.command = {program.empty() ? std::filesystem::read_symlink("/proc/self/exe").string()
                                    : program};
  if (dashes != arguments.end()) ++dashes;
  if (dashes == arguments.end() && program.empty()) {
    throw ConfigError("nothing to launch: lockstep launch -n {} -- train CONFIG", ranks);
  }
  launch.command.insert(launch.command.end(), dashes, arguments.end());
  LaunchOutcome outcome = launch_local(launch);
  if (outcome.exit_code != kExitOk) fail(outcome);
  return kExitOk;
}

}  // namespace lockstep
