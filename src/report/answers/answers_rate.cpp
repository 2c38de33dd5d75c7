// Answers question 6: the learning rate schedule, its formula, and whether the run followed it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "config/source.h"
#include "optim/schedules/schedules.h"
#include "report/answers/answers.h"
#include "report/draw/figure_text.h"

namespace lockstep {

namespace {

struct Explanation {
  std::string formula, why;
};

std::string warm_up_text(const ScheduleConfig& c) {
  return c.warmup_steps > 0
             ? fmt::format(
                   "It rises in a line over the first {} steps: early gradients and the "
                   "optimizer's averages are not to be trusted with large steps yet.",
                   with_commas(c.warmup_steps))
             : "There is no warm-up.";
}

Explanation explain_schedule(const ScheduleConfig& c, double lr, double width) {
  const std::string warm = warm_up_text(c);
  if (c.name == "noam") {
    return {
        fmt::format("lr(s) = {:g} x {:g}^-0.5 x min(s^-0.5, s x {}^-1.5){}", lr, width,
                    c.warmup_steps, c.max_lr > 0 ? fmt::format(", at most {:g}", c.max_lr) : ""),
        warm +
            " Then it falls with the square root of the step, so that later steps average "
            "over more noise; the width scales it, as wider models need smaller steps "
            "(Vaswani et al. 2017, section 5.3)."};
  }
  if (c.name == "inverse_sqrt") {
    return {
        fmt::format("lr(s) = {:g} x min(s / {}, ({} / s)^0.5)", lr, c.warmup_steps, c.warmup_steps),
        warm + " Then it falls with the square root of the step."};
  }
  if (c.name == "constant") {
    return {fmt::format("lr(s) = {:g} x min(1, s / {})", lr, c.warmup_steps),
            warm + " Then it stays: simple, but the last steps are as large as the first."};
  }
  if (c.name == "fixed") return {fmt::format("lr(s) = {:g}", lr), "It is the same at all steps."};
  if (c.name == "linear") {
    return {
        fmt::format("lr(s) = {:g} x warm-up x line from 1 to {:g} at the last step", lr, c.floor),
        warm + " Then it falls in a line, so that the weights settle at the end."};
  }
  if (c.name == "cosine") {
    return {fmt::format("lr(s) = {:g} x warm-up x half a cosine from 1 to {:g}", lr, c.floor),
            warm +
                " Then half a cosine: long near the peak, gentle at the end (Loshchilov and "
                "Hutter 2017)."};
  }
  if (c.name == "one_cycle") {
    return {fmt::format(
                "from {:g} up to {:g} over the first {} of the run, then down to {:.3g} ({})",
                lr / c.div_factor, lr, percent(c.pct_start), lr / c.div_factor / c.final_div_factor,
                c.anneal_strategy == "cos" ? "half cosines" : "lines"),
            "Large steps in the middle act against overfitting and pass flat regions quickly, the "
            "long fall at the end lets the weights settle (Smith and Topin 2017)."};
  }
  if (c.name == "piecewise") {
    std::string values = fmt::format("{:g}", lr);
    for (std::size_t i = 0; i < std::min(c.boundaries.size(), c.values.size()); ++i) {
      values += fmt::format(", {:g} from step {:.0f}", lr * c.values[i], c.boundaries[i] + 2);
    }
    return {"lr = " + values, "Each drop lets the loss settle lower."};
  }
  if (c.name == "exp") {
    return {fmt::format("lr(s) = {:g} x {:g}^((s - 1 - {}) / {}){}", lr, c.decay_rate,
                        c.begin_decay_at, c.decay_steps, c.staircase ? ", in stairs" : ""),
            "It falls by the same factor over and over."};
  }
  return {fmt::format("{} of power {:g}, from {:g} to {:g}", c.name, c.power, lr, c.min_lr), warm};
}

// Shortens numbers without changing them: 0.1 for 0.10000000000000001.
std::string shown(const std::string& value) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  const bool is_number = !value.empty() && end == value.c_str() + value.size();
  return is_number ? fmt::format("{}", number) : value;
}

// Compares the program's own function, step by step, with what was recorded.
void compare_rates(const RunHistory& h, const ScheduleConfig& config, double lr, double width,
                   Answer& out) {
  const ScheduleContext context{.width = static_cast<int64_t>(width),
                                .total_steps = std::max<int64_t>(1, h.total_steps),
                                .lr = lr};
  double worst = 0, peak = 0;
  int64_t at = 0, compared = 0, peak_step = 0;
  const std::size_t stride = std::max<std::size_t>(1, h.steps.size() / 5000);
  for (std::size_t i = 0; i < h.steps.size(); i += stride) {
    const StepRow& row = h.steps[i];
    if (!std::isfinite(row.lr)) continue;
    if (row.lr > peak) {
      peak = row.lr;
      peak_step = row.step;
    }
    const double expected = lr * schedule_value(row.step, config, context);
    const double off = std::abs(row.lr - expected) / std::max(1e-30, std::abs(expected));
    compared += 1;
    if (off > worst) {
      worst = off;
      at = row.step;
    }
  }
  out.facts["compared_steps"] = compared;
  out.facts["largest_deviation"] = worst;
  if (compared > 0) {
    out.evidence.push_back(fmt::format("The highest recorded rate is {:.4g}, at step {}.", peak,
                                       with_commas(peak_step)));
    constexpr double kRounding = 1e-4;
    out.evidence.push_back(
        worst < kRounding
            ? fmt::format("{} recorded rates are those of the formula (within {}).",
                          with_commas(compared),
                          worst < 1e-9 ? "1e-9" : fmt::format("{:.1g}", worst))
            : fmt::format("The recorded rates are not those of the formula: at step {} by {}. The "
                          "configuration was changed between attempts, or the number of steps was.",
                          with_commas(at), percent(worst)));
  }
}

}  // namespace

Answer answer_learning_rate(const Run& run) {
  Answer out{.id = "learning_rate", .question = "What does the learning-rate curve say, and why?"};
  const RunHistory& h = run.history;
  ScheduleConfig config;
  ConfigSource source = ConfigSource::from_file(run.facts.folder / "config.toml");
  config.name = source.name_at("schedule.name", "");
  if (config.name.empty() || schedules().find(config.name) == nullptr) {
    out.verdict = "The configuration names no schedule that this version knows.";
  } else {
    source.read("schedule", config);
    const double lr = run.facts.number("optimizer.lr", 1),
                 width = run.facts.number("model.d_model", 512);
    const Explanation words = explain_schedule(config, lr, width);
    out.verdict = fmt::format("Schedule {}: {}", config.name, words.formula);
    out.evidence.push_back(words.why);
    out.facts["schedule"] = config.name;
    out.facts["formula"] = words.formula;
    compare_rates(h, config, lr, width, out);
    out.code.push_back(fmt::format("optimizer.name = \"{}\"", run.facts.value("optimizer.name")));
    out.code.push_back(fmt::format("optimizer.lr = {}", shown(run.facts.value("optimizer.lr"))));
    for (const auto& [key, value] : run.facts.config) {
      if (key.starts_with("schedule.")) out.code.push_back(key + " = " + shown(value));
    }
  }
  if (!h.steps.empty()) {
    Figure figure{.name = "learning-rate",
                  .title = "Learning rate",
                  .caption =
                      "As recorded, a value a step; means of neighbours where there are more "
                      "than 400."};
    PlotPanel panel{.x = {.title = "step", .whole = true},
                    .y = {.title = "learning rate", .from = 0.0}};
    panel.series = {series_of("learning rate", h, &StepRow::lr)};
    figure.panels.push_back(panel);
    out.figures.push_back(figure);
  }
  return out;
}

}  // namespace lockstep
