#include "launch/ending/spending.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr double kForTheLauncher = 3;  // seconds, for what the launcher does beside the ranks' stop

double one_price(std::string_view word, const std::string& text) {
  std::string number(word);
  if (number.ends_with("/h")) number.resize(number.size() - 2);
  char* end = nullptr;
  const double price = std::strtod(number.c_str(), &end);
  const bool whole = !number.empty() && end == number.c_str() + number.size();
  if (!whole || !std::isfinite(price) || price <= 0) {
    throw ConfigError(
        "--price {}: expected the price of one host an hour, above 0: 0.526/h, or of single hosts "
        "and all others: a=0.9/h,0.526/h",
        text);
  }
  return price;
}

}  // namespace

double HostPrices::of(const std::string& host) const {
  const auto own = named.find(host);
  return own == named.end() ? each : own->second;
}

HostPrices parse_prices(const std::string& text, const std::vector<std::string>& hosts,
                        const std::vector<std::string>& unpriced) {
  HostPrices out;
  for (const std::string& word : split(text, ',')) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      if (out.each > 0) throw ConfigError("--price {}: two prices for all hosts", text);
      out.each = one_price(word, text);
      continue;
    }
    const std::string host = word.substr(0, equals);
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) {
      throw ConfigError("--price {}: no host \"{}\"{}", text, host, did_you_mean(host, hosts));
    }
    out.named[host] = one_price(std::string_view(word).substr(equals + 1), text);
  }
  for (const std::string& host : unpriced) {
    if (out.each > 0 || out.named.contains(host)) continue;
    throw ConfigError("--price {}: no price of host {}", text, host);
  }
  return out;
}

double Spending::seconds_until(double share) const {
  return std::max(0.0, (budget * share - before) / per_hour * 3600);
}

double Spending::stop_after(double margin_seconds) const {
  return std::max(0.0, seconds_until(1) - margin_seconds);
}

double stop_margin(double grace_seconds, double longest_checkpoint_seconds) {
  return std::max(grace_seconds, 2 * longest_checkpoint_seconds) + kForTheLauncher;
}

void check_budget(const Spending& s, std::size_t hosts, double margin_seconds) {
  const double lasts = s.seconds_until(1);
  if (lasts > margin_seconds) return;
  ConfigError error(
      "--budget {:g}: {}{} cost {:g} an hour, so {} are left, and a stop with a checkpoint "
      "may take {}",
      s.budget, s.before > 0 ? fmt::format("{:.2f} are spent; ", s.before) : "",
      hosts == 1 ? "1 host" : fmt::format("{} hosts", hosts), s.per_hour, short_duration(lasts),
      short_duration(margin_seconds));
  error.set_advice("a larger budget, fewer hosts, or a shorter --grace");
  throw error;
}

double spent_before(const std::filesystem::path& launch_log) {
  std::error_code none;
  if (launch_log.empty() || !fs::exists(launch_log, none)) return 0;
  std::map<std::string, double> launches;  // by run_id
  for_each_line(launch_log, [&](std::string_view line, int64_t) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("cost") || !json["cost"].is_number()) return;
    double& cost = launches[json.value("run_id", "")];
    cost = std::max(cost, json["cost"].get<double>());
  });
  double out = 0;
  for (const auto& [id, cost] : launches) out += cost;
  return out;
}

}  // namespace lockstep
