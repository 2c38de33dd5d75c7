#include "commands/launch/launch_ending.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/text.h"
#include "launch/hosts/remote.h"

namespace lockstep {

namespace {

constexpr std::size_t kMostTargets = 8;
constexpr double kMostMinutes = 7 * 24 * 60;

// Prices by the option and, where it has none for a host, by the hosts file.
HostPrices prices_of(const LaunchArguments& a, const HostList& hosts) {
  HostPrices out;
  std::vector<std::string> names;
  for (const Host& host : hosts.hosts) names.push_back(host.name);
  const bool all_priced = std::all_of(hosts.hosts.begin(), hosts.hosts.end(),
                                      [](const Host& host) { return host.price > 0; });
  if (!a.price.empty()) {
    std::vector<std::string> unpriced;
    for (const Host& host : hosts.hosts) {
      if (host.price <= 0) unpriced.push_back(host.name);
    }
    out = parse_prices(a.price, names, unpriced);
  } else if (!all_priced || hosts.hosts.empty()) {
    return out;
  }
  for (const Host& host : hosts.hosts) {
    if (host.price > 0) out.named.emplace(host.name, host.price);
  }
  return out;
}

Spending spending_of(const LaunchArguments& a, const Launch& launch) {
  Spending out;
  if (a.budget && !(*a.budget > 0 && std::isfinite(*a.budget))) {
    throw ConfigError("--budget {}: expected a sum above 0", *a.budget);
  }
  const HostPrices prices = prices_of(a, launch.hosts);
  if (!prices.given()) {
    if (!a.budget) return out;
    ConfigError error("--budget {:g}: what does an hour cost?", *a.budget);
    error.set_advice("--price 0.526/h, of one host; or price=0.526 in each line of a hosts file");
    throw error;
  }
  for (const Host& host : launch.hosts.hosts) out.per_hour += prices.of(host.name);
  if (launch.hosts.hosts.empty()) out.per_hour = prices.each;
  out.before = std::max(a.spent, spent_before(launch.events));
  if (!a.budget) return out;
  out.budget = *a.budget;
  check_budget(out, std::max<std::size_t>(1, launch.hosts.hosts.size()),
               stop_margin(seconds_of(launch.supervision.grace), 0));
  return out;
}

PowerOptions power_of(const LaunchArguments& a, const Launch& launch, const EndingFacts& facts) {
  PowerOptions out{.off = a.power_off || a.power_anyway,
                   .anyway = a.power_anyway,
                   .command = a.power_command,
                   .after_minutes = a.power_after};
  if (!out.off) {
    if (!a.power_command.empty()) throw ConfigError("--power-off-command: only with --power-off");
    return out;
  }
  if (!(out.after_minutes > 0 && out.after_minutes <= kMostMinutes)) {
    throw ConfigError("--power-off-after {}: expected minutes above 0 and up to {}", a.power_after,
                      kMostMinutes);
  }
  if (launch.hosts.hosts.empty()) throw ConfigError("--power-off: no hosts are given");
  const bool all_here = std::all_of(launch.hosts.hosts.begin(), launch.hosts.hosts.end(),
                                    [](const Host& host) { return is_this_machine(host); });
  if (all_here && !facts.detached) {
    throw ConfigError("--power-off: all hosts are this machine, which stays on");
  }
  if (!out.anyway && !facts.mirrored && (facts.run.empty() || facts.detached || a.then.empty())) {
    ConfigError error("--power-off: nothing would bring the run to another place before");
    error.set_advice(
        "checkpoint.mirror, without --detach also --then 'lockstep fetch ...'; or "
        "--power-off-anyway");
    throw error;
  }
  return out;
}

}  // namespace

EndingOptions ending_of(const LaunchArguments& given, const Launch& launch,
                        const EndingFacts& facts) {
  EndingOptions out;
  if (given.notify.size() > kMostTargets) {
    throw ConfigError("--notify: {} of them; at most {}", given.notify.size(), kMostTargets);
  }
  for (const std::string& word : given.notify) out.notify.push_back(notify_target(word));
  if (!given.then.empty()) check_shell_command(given.then, "--then");
  out.then = given.then;
  out.power = power_of(given, launch, facts);
  out.spending = spending_of(given, launch);
  out.run = facts.run;
  if (!launch.events.empty()) out.run_here = launch.events.parent_path().string();
  out.mirrored = facts.mirrored;
  out.detached = facts.detached;
  return out;
}

void settle_ending(LaunchArguments& given, const EndingOptions& ending, const HostList& hosts) {
  given.notify.clear();
  for (const NotifyTarget& target : ending.notify) given.notify.push_back(target.word);
  if (ending.spending.per_hour <= 0) return;
  const HostPrices prices = prices_of(given, hosts);
  std::vector<std::string> words;
  for (const Host& host : hosts.hosts) {
    words.push_back(fmt::format("{}={}/h", host.name, prices.of(host.name)));
  }
  given.price = join(words, ",");
}

}  // namespace lockstep
