// Writes a plan as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "launch/plan/plan.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

std::string ms(double seconds) { return with_commas(std::llround(seconds * 1000)) + " ms"; }

std::string rate_text(double bytes_per_second) {
  return fmt::format("{}/s ({:.3g} Gbit/s)", short_bytes(bytes_per_second),
                     bytes_per_second * 8e-9);
}

std::string money(double cost) { return fmt::format("{:.2f}", cost); }

std::string inputs_text(const Plan& plan) {
  const PlanInputs& in = plan.inputs;
  const RunMeasurement& m = in.facts;
  std::string out;
  out += fmt::format("Run:            {}, {} weights, {}, {} steps an epoch of {} {}\n", in.config,
                     with_commas(m.weights), m.precision, with_commas(m.steps_in_epoch),
                     with_commas(std::llround(m.targets_per_step)), m.unit);
  out += fmt::format("Hosts:          {} x {} rank{} x {} thread{}: {}\n", in.hosts.size(),
                     in.ranks_per_host, in.ranks_per_host == 1 ? "" : "s", m.threads,
                     m.threads == 1 ? "" : "s", join(in.hosts, ", "));
  out += fmt::format("Compute:        {}\n", in.compute_source);
  if (in.hosts.size() > 1) {
    out += fmt::format("Network:        {}{}, {:.3f} ms a message; {}\n",
                       in.link_at_least ? "at least " : "", rate_text(in.link.bytes_per_second),
                       in.link.latency_seconds * 1e3, in.link_source);
  }
  return out;
}

std::string step_text(const Plan& plan) {
  const StepPrediction& s = plan.base.step;
  std::string out = fmt::format("Step:           {} = compute {} + wait {} + data {}\n",
                                ms(s.seconds), ms(s.compute), ms(s.wait), ms(s.data));
  if (plan.base.scenario.hosts > 1) {
    const double hidden = s.exchange > 0 ? std::max(0.0, 1 - s.wait / s.exchange) : 0;
    out += fmt::format("Exchange:       {} a step, {:.0f} % of it behind the backward pass\n",
                       ms(s.exchange), hidden * 100);
  }
  out += fmt::format("Speed:          {} {}/s\n", short_number(s.targets_per_second()),
                     plan.inputs.facts.unit);
  return out;
}

std::string run_text(const Plan& plan) {
  const RunPrediction& r = plan.base.run;
  const RunMeasurement& m = plan.inputs.facts;
  const StepPrediction& s = plan.base.step;
  std::string out;
  out += fmt::format(
      "To the end:     {}: {} steps{} {}, evaluations ({}) {}, checkpoints ({}) {}\n",
      short_duration(r.seconds()), with_commas(r.steps),
      r.ends_early ? " (then training.minutes is over)" : "", short_duration(r.train_seconds),
      r.evaluations, short_duration(r.evaluation_seconds), r.checkpoints,
      short_duration(r.checkpoint_seconds));
  if (plan.base.scenario.hosts > 1) {
    out += fmt::format(
        "Traffic:        each host sends, and receives, {} a step, {} an hour, {} in all\n",
        short_bytes(s.sent_bytes), short_bytes(s.sent_bytes / s.seconds * 3600),
        short_bytes(r.sent_bytes));
  }
  int64_t peak = 0;
  for (int64_t bytes : m.peak_bytes) peak = std::max(peak, bytes);
  if (peak > 0) {
    out += fmt::format("Memory:         {} a rank, {} a host\n",
                       short_bytes(static_cast<double>(peak)),
                       short_bytes(static_cast<double>(peak) * plan.inputs.ranks_per_host));
  }
  if (m.checkpoint_bytes > 0) {
    out += fmt::format(
        "Checkpoint:     {} in {}, training stands still for {}; {} kept: {}\n",
        short_bytes(static_cast<double>(m.checkpoint_bytes)), ms(m.checkpoint_seconds),
        ms(m.held_seconds), m.length.checkpoints_kept,
        short_bytes(static_cast<double>(m.checkpoint_bytes * m.length.checkpoints_kept)));
  }
  if (plan.inputs.price_per_hour > 0) {
    out += fmt::format("Cost:           {} at {} a host and hour\n", money(plan.base.cost),
                       plan.inputs.price_per_hour);
  }
  return out;
}

std::string choices_text(const Plan& plan) {
  const bool priced = plan.inputs.price_per_hour > 0;
  std::string out = fmt::format("\n  {:<30} {:>10} {:>10} {:>10} {:>13} {:>12}{}  {}\n", "what if",
                                "step", "wait", plan.inputs.facts.unit + "/s", "time",
                                "sent a step", priced ? "      cost" : "", "changes");
  auto row = [&](const PlannedChoice& c) {
    out +=
        fmt::format("  {:<30} {:>10} {:>10} {:>10} {:>13} {:>12}{}  {}\n", c.scenario.name,
                    ms(c.step.seconds), ms(c.step.wait), short_number(c.step.targets_per_second()),
                    short_duration(c.run.seconds()), short_bytes(c.step.sent_bytes),
                    priced ? fmt::format("{:>10}", money(c.cost)) : "", c.scenario.note);
  };
  row(plan.base);
  for (const PlannedChoice& c : plan.choices) row(c);
  return out + "\nBest: " + plan.advice + "\n";
}

Json choice_json(const PlannedChoice& c) {
  const StepPrediction& s = c.step;
  const RunPrediction& r = c.run;
  return {{"name", c.scenario.name},
          {"changes", c.scenario.note},
          {"changes_what_is_learned", c.scenario.changes_result},
          {"hosts", c.scenario.hosts},
          {"step",
           {{"seconds", s.seconds},
            {"compute_seconds", s.compute},
            {"wait_seconds", s.wait},
            {"data_seconds", s.data},
            {"exchange_seconds", s.exchange},
            {"sent_bytes", s.sent_bytes},
            {"targets", s.targets},
            {"targets_per_second", s.targets_per_second()}}},
          {"run",
           {{"seconds", r.seconds()},
            {"steps", r.steps},
            {"ends_by_minutes", r.ends_early},
            {"train_seconds", r.train_seconds},
            {"evaluations", r.evaluations},
            {"evaluation_seconds", r.evaluation_seconds},
            {"checkpoints", r.checkpoints},
            {"checkpoint_seconds", r.checkpoint_seconds},
            {"sent_bytes", r.sent_bytes}}},
          {"cost", c.cost}};
}

}  // namespace

std::string plan_report(const Plan& plan) {
  return inputs_text(plan) + step_text(plan) + run_text(plan) + choices_text(plan);
}

Json to_json(const Plan& plan) {
  const PlanInputs& in = plan.inputs;
  Json out = {{"format", 1},
              {"lockstep", LOCKSTEP_VERSION},
              {"config", in.config},
              {"words", in.words},
              {"hosts", in.hosts},
              {"ranks", static_cast<int>(in.hosts.size()) * in.ranks_per_host},
              {"ranks_per_host", in.ranks_per_host},
              {"compute", in.compute_source},
              {"network",
               {{"source", in.link_source},
                {"latency_seconds", in.link.latency_seconds},
                {"bytes_per_second", in.link.bytes_per_second},
                {"at_least", in.link_at_least},
                {"cpu_seconds_per_byte", in.link.cpu_seconds_per_byte}}},
              {"price_per_host_hour", in.price_per_hour},
              {"prediction", choice_json(plan.base)}};
  out["what_if"] = Json::array();
  for (const PlannedChoice& c : plan.choices) out["what_if"].push_back(choice_json(c));
  auto name = [&](int i) {
    return i < 0 ? Json(nullptr) : Json(plan.choices[static_cast<std::size_t>(i)].scenario.name);
  };
  out["best"] = {{"setting", name(plan.best)},
                 {"setting_that_changes_what_is_learned", name(plan.best_changing)},
                 {"advice", plan.advice}};
  out["measurement"] = to_json(in.facts);
  return out;
}

}  // namespace lockstep
