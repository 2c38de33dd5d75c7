#include "commands/shared/job_spending.h"

#include <algorithm>
#include <cstdlib>

#include "base/clock.h"
#include "base/error.h"
#include "launch/ending/spending.h"

namespace lockstep {

std::string option_of_job(const JobRecord& record, const std::string& name) {
  const auto option = std::find(record.options.begin(), record.options.end(), name);
  const bool given = option != record.options.end() && option + 1 != record.options.end();
  return given ? *(option + 1) : "";
}

void set_option_of_job(JobRecord& record, const std::string& name, const std::string& value) {
  auto& words = record.options;
  const auto option = std::find(words.begin(), words.end(), name);
  if (option != words.end()) words.erase(option, option + 2);
  words.insert(words.end(), {name, value});
}

std::optional<double> spent_on_job(const FoundJob& job) {
  const std::string text = option_of_job(job.record, "--price");
  if (text.empty()) return std::nullopt;
  std::vector<std::string> names;
  for (const JobHost& host : job.record.hosts) names.push_back(host.name);
  Spending spending;
  try {
    const HostPrices prices = parse_prices(text, names, names);
    for (const std::string& name : names) spending.per_hour += prices.of(name);
  } catch (const ConfigError&) {  // a record by another hand
    return std::nullopt;
  }
  spending.before = std::atof(option_of_job(job.record, "--spent").c_str());
  double until = job.lives() ? unix_seconds() : job.record.ended;
  if (until == 0) {  // lost: when its hosts last wrote
    for (const FoundJob::Place& place : job.places) {
      if (!place.saw) continue;
      until = std::max(until, place.saw->live_time);
      for (const auto& [rank, time] : place.saw->logs) until = std::max(until, time);
    }
  }
  return spending.spent(std::max(0.0, until - job.record.started));
}

}  // namespace lockstep
