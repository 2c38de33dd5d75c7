#include "launch/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

// A change is worthwhile when it saves this share of the time.
constexpr double kWorthwhile = 0.03;

PlannedChoice choose(const PlanInputs& in, Scenario scenario) {
  PlannedChoice out{.scenario = std::move(scenario)};
  double evaluation = in.evaluation_seconds;
  if (evaluation < 0) {
    evaluation = in.facts.evaluation_first_seconds +
                 in.facts.evaluation_each_seconds * static_cast<double>(in.evaluated_items);
  }
  out.step = predict_step(in.compute, out.scenario);
  out.run = predict_run(out.step, in.facts, out.scenario, evaluation);
  out.cost = in.price_per_hour * out.scenario.hosts * out.run.seconds() / 3600;
  return out;
}

Scenario as_configured(const PlanInputs& in) {
  return {.name = "as configured",
          .hosts = static_cast<int>(in.hosts.size()),
          .ranks_per_host = in.ranks_per_host,
          .cores_per_host = in.cores_per_host,
          .link = in.link,
          .lanes = in.lanes(),
          .wire_factor = in.facts.wire_factor,
          .local_steps = in.facts.local_steps,
          .sharded = in.facts.sharded};
}

// Returns the bytes of the factors of rank `rank` and of all vectors, in fp32, per byte of gradient
// (Vogels et al. 2019, "PowerSGD", algorithm 1).
double powersgd_factor(const RunMeasurement& m, int rank) {
  const double numbers =
      static_cast<double>(m.matrix_sides) * rank + static_cast<double>(m.other_numbers);
  return std::min(1.0, 4 * numbers / static_cast<double>(m.gradient_bytes));
}

std::vector<Scenario> other_choices(const PlanInputs& in) {
  const Scenario base = as_configured(in);
  std::vector<Scenario> out;
  auto add = [&](const char* name, const char* note, auto change) {
    Scenario s = base;
    s.name = name;
    s.note = note;
    change(s);
    out.push_back(std::move(s));
  };
  if (base.hosts > 1) {
    if (base.wire_factor == 1) {
      add("comm.hook=bf16", "gradients rounded", [](Scenario& s) { s.wire_factor = 0.5; });
      add("comm.hook=fp16", "gradients rounded", [](Scenario& s) { s.wire_factor = 0.5; });
    }
    add("comm.hook=powersgd", "gradients of low rank, error fed back", [&](Scenario& s) {
      constexpr int kRank = 4;
      s.wire_factor = std::min(s.wire_factor, powersgd_factor(in.facts, kRank));
      s.changes_result = true;
    });
  }
  add("batch x2, accumulated", "steps of twice the targets", [](Scenario& s) {
    s.accumulate = 2;
    s.changes_result = true;
  });
  add("batch x4, accumulated", "steps of four times the targets", [](Scenario& s) {
    s.accumulate = 4;
    s.changes_result = true;
  });
  if (base.hosts > 1) {
    for (int64_t steps : {16, 100, 500}) {
      const std::string name = fmt::format("DiLoCo, {} local steps", steps);
      add(name.c_str(), "hosts learn apart between sums", [&](Scenario& s) {
        s.local_steps = steps;
        s.changes_result = true;
      });
    }
  }
  if (!base.sharded && base.hosts * base.ranks_per_host > 1) {
    add("training.shard_optimizer=true", "less memory", [](Scenario& s) { s.sharded = true; });
  }
  if (base.hosts > 1) add("one host fewer", "", [](Scenario& s) { --s.hosts; });
  if (base.link.bytes_per_second > 0) add("one host more", "", [](Scenario& s) { ++s.hosts; });
  if (base.hosts > 1 && base.link.bytes_per_second < 0.5 * kGoodput * 1.25e9) {
    add("10 Gbit/s", "another network",
        [](Scenario& s) { s.link.bytes_per_second = kGoodput * 1.25e9; });
  }
  return out;
}

bool is_setting(const PlannedChoice& choice, const PlannedChoice& base) {
  return choice.scenario.hosts == base.scenario.hosts &&
         choice.scenario.link.bytes_per_second == base.scenario.link.bytes_per_second;
}

// Returns the fastest setting among those that change what is learned, or those that do not; -1:
// none.
int quickest(const Plan& plan, bool changing) {
  int best = -1;
  double pace = plan.base.seconds_per_target() * (1 - kWorthwhile);
  for (std::size_t i = 0; i < plan.choices.size(); ++i) {
    const PlannedChoice& c = plan.choices[i];
    if (!is_setting(c, plan.base) || c.scenario.changes_result != changing) continue;
    // Choices are ordered from mild to drastic: a later one must be worth it.
    if (c.seconds_per_target() < pace) {
      best = static_cast<int>(i);
      pace = c.seconds_per_target() * (1 - kWorthwhile);
    }
  }
  return best;
}

std::string advice_text(const Plan& plan) {
  const StepPrediction& step = plan.base.step;
  const double share = step.wait / step.seconds;
  std::string out;
  auto times = [&](int i) {
    return fmt::format("{} ({:.2f} x as fast)",
                       plan.choices[static_cast<std::size_t>(i)].scenario.name,
                       plan.base.seconds_per_target() /
                           plan.choices[static_cast<std::size_t>(i)].seconds_per_target());
  };
  if (plan.base.scenario.hosts == 1) {
    out = "one host: no step waits for a network";
  } else if (plan.best < 0) {
    out = fmt::format(
        "as configured: {:.0f} % of a step waits for the network, and no setting that "
        "learns the same saves {:.0f} %",
        share * 100, kWorthwhile * 100);
  } else {
    out =
        fmt::format("{}: {:.0f} % of a step waits for the network", times(plan.best), share * 100);
  }
  if (plan.best_changing >= 0) {
    out += fmt::format("; faster still, but it changes what is learned: {}",
                       times(plan.best_changing));
  }
  for (const PlannedChoice& c : plan.choices) {
    if (c.scenario.name == "one host fewer" &&
        c.seconds_per_target() < plan.base.seconds_per_target()) {
      out += fmt::format(
          "; {} host{} would be faster than {}: the network costs more than the "
          "hosts add",
          c.scenario.hosts, c.scenario.hosts == 1 ? "" : "s", plan.base.scenario.hosts);
    }
  }
  return out;
}

}  // namespace

Plan make_plan(PlanInputs inputs) {
  Plan plan{.inputs = std::move(inputs)};
  plan.base = choose(plan.inputs, as_configured(plan.inputs));
  for (Scenario& scenario : other_choices(plan.inputs)) {
    plan.choices.push_back(choose(plan.inputs, std::move(scenario)));
  }
  plan.best = quickest(plan, false);
  plan.best_changing = quickest(plan, true);
  auto seconds_of = [&](int i) {
    return i < 0 ? plan.base.seconds_per_target()
                 : plan.choices[static_cast<std::size_t>(i)].seconds_per_target();
  };
  if (seconds_of(plan.best_changing) > seconds_of(plan.best) * (1 - kWorthwhile)) {
    plan.best_changing = -1;
  }
  plan.advice = advice_text(plan);
  return plan;
}

namespace {

struct Unit {
  const char* name;
  double factor;
};

// Parses a number and one of the units, which are lower case; blanks between them are allowed.
double parse_quantity(const std::string& text, const std::vector<Unit>& units,
                      const std::string& problem) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = lower_ascii(trim(end));
  for (const Unit& u : units) {
    if (unit == u.name && end != text.c_str() && number > 0 && std::isfinite(number)) {
      return number * u.factor;
    }
  }
  throw ConfigError("{}", problem);
}

}  // namespace

double parse_bandwidth(const std::string& text, const std::string& option) {
  std::vector<Unit> units;
  // mbit is the line's rate, of which data gets the goodput; mb/s is a rate of data.
  static const std::vector<std::pair<std::string, double>> kBits = {
      {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}};
  std::vector<std::string> names;
  for (const auto& [name, factor] : kBits) {
    for (const char* end : {"", "/s", "ps"}) names.push_back(name + end);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    units.push_back({names[i].c_str(), kBits[i / 3].second / 8 * kGoodput});
  }
  units.insert(units.end(), {{"kb/s", 1e3}, {"mb/s", 1e6}, {"gb/s", 1e9}});
  return parse_quantity(
      text, units,
      fmt::format("{} {}: expected a rate above 0, as 1gbit, 100mbit or 12.5MB/s", option, text));
}

double parse_delay(const std::string& text, const std::string& option) {
  return parse_quantity(
      text, {{"s", 1.0}, {"ms", 1e-3}, {"us", 1e-6}},
      fmt::format("{} {}: expected a time above 0, as 20ms or 150us", option, text));
}

double parse_price(const std::string& text, const std::string& option) {
  return parse_quantity(
      text, {{"", 1}, {"/h", 1}},
      fmt::format("{} {}: expected the price of one host an hour, as 0.526/h", option, text));
}

}  // namespace lockstep
