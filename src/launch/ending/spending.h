// What a run on hosts that are paid by the hour has cost, and how long its budget lasts. Pure
// arithmetic: hours are those since a launcher began, whatever its hosts did in them, and launches
// before count with what they cost (docs/launch.md#what-it-costs).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace lockstep {

// Prices of hosts an hour, in whatever currency.
struct HostPrices {
  double each = 0;                      // of those without one of their own
  std::map<std::string, double> named;  // of a host, by name

  bool given() const { return each > 0 || !named.empty(); }
  double of(const std::string& host) const;
};

// Reads "0.526/h", "0.526", or prices of single hosts and of all others: "a=0.9/h,0.526/h". Throws
// ConfigError for anything else, a price that is not above 0, a host that is none of `hosts`, and
// when one of `unpriced` gets none.
HostPrices parse_prices(const std::string& text, const std::vector<std::string>& hosts,
                        const std::vector<std::string>& unpriced);

// What a launch may spend, and what was spent before it began.
struct Spending {
  double per_hour = 0;  // of all hosts together; 0: no price is known
  double before = 0;    // by earlier launches of the run
  double budget = 0;    // of all launches; 0: none

  double spent(double seconds) const { return before + here(seconds); }
  double here(double seconds) const { return per_hour * seconds / 3600; }
  // Seconds after the begin of the launch at which this share of the budget is spent; not below 0.
  // REQUIRES a budget and a price.
  double seconds_until(double share) const;
  // ... and at which the ranks must be told to stop, so that the end, `margin_seconds` later, comes
  // before the sum is spent.
  double stop_after(double margin_seconds) const;
};

// How long to allow for a stop: the longer of the grace time and twice the longest checkpoint so
// far, and what the launcher itself needs.
double stop_margin(double grace_seconds, double longest_checkpoint_seconds);

// The share of a budget at which one is warned.
inline constexpr double kNearBudget = 0.8;

// Throws ConfigError, which says how long the budget lasts and what the start needs at least, when
// less is left than a stop takes.
void check_budget(const Spending& spending, std::size_t hosts, double margin_seconds);

// What earlier launches of a run cost, by its launch.jsonl; 0 where there is none.
double spent_before(const std::filesystem::path& launch_log);

}  // namespace lockstep
