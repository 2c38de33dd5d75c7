#include "commands/hosts/agent.h"

#include <charconv>
#include <optional>

#include "launch/job/agent.h"
#include "launch/jobs/job_keeper.h"

namespace lockstep {

namespace {

ProcessId to_process(const std::string& text) {
  ProcessId out;
  const char* end = text.data() + text.size();
  auto [colon, failed] = std::from_chars(text.data(), end, out.pid);
  bool whole = failed == std::errc() && colon != end && *colon == ':' &&
               std::from_chars(colon + 1, end, out.started).ptr == end;
  if (!whole || out.pid <= 1) throw ConfigError("--replaces {}: expected PID:START", text);
  return out;
}

}  // namespace

int agent(const Arguments& arguments) {
  double silence_seconds = 5;
  std::string replaces;
  JobMember::Orders orders;
  CommandLine app("Serves a launcher over standard input and output.", "lockstep agent");
  app.add_option("--silence", silence_seconds, "seconds without a word that mean it is gone")
      ->positive();
  app.add_option("--replaces", replaces, "PID:START of an agent that ends first");
  app.add_option("--job", orders.id, "the detached job that it belongs to");
  app.add_option("--term", orders.term, "of the job's launcher");
  app.add_option("--launcher", orders.launcher, "name of the launcher's host");
  app.add_option("--host", orders.me, "name of this host");
  AgentOptions options;
  app.add_option("--spot", options.spot.cloud, "whose notices are read (lockstep launch --spot)");
  app.add_option("--metadata", options.spot.metadata, "where, instead of that cloud's address");
  if (!app.parse(arguments)) return kExitOk;
  std::optional<JobMember> member;
  if (!orders.id.empty()) {
    member.emplace(orders);
    options.admit = [&](const StartOrder& order) {
      member->admit(order.command, order.environment);
    };
    options.daily = [&] { member->renew_key(); };
  }
  options.silence = std::chrono::milliseconds(static_cast<int64_t>(silence_seconds * 1000));
  if (!replaces.empty()) options.replaces = to_process(replaces);
  return run_agent(options);
}

}  // namespace lockstep
