#include "train/listeners/plan_check.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/statistics.h"
#include "base/text.h"
#include "train/folder/run_measurement.h"

namespace lockstep {

namespace {

constexpr int64_t kWarmingSteps = 3;     // buffers are allocated, TCP windows grow
constexpr std::size_t kFewestSteps = 5;  // with fewer, a median says nothing

// Returns the median over the means of two steps in a row. On long ways short and long steps take
// turns: the step of a rank whose data came late is long, and the next one finds the other's data
// there.
double typical(const std::vector<double>& values) {
  std::vector<double> means;
  for (std::size_t i = 1; i < values.size(); ++i) means.push_back((values[i - 1] + values[i]) / 2);
  return median(std::move(means));
}

std::string parts_text(const PlannedStep& s) {
  auto ms = [](double seconds) { return with_commas(std::llround(seconds * 1000)); };
  return fmt::format("compute {} wait {} data {}", ms(s.compute), ms(s.wait), ms(s.data));
}

nlohmann::ordered_json parts_json(const PlannedStep& s) {
  return {{"step_seconds", s.seconds},
          {"compute_seconds", s.compute},
          {"wait_seconds", s.wait},
          {"data_seconds", s.data}};
}

}  // namespace

std::optional<PlannedStep> find_plan(const std::string& given, const fs::path& run_folder) {
  PlannedStep out{.file = given.empty() ? run_folder / kPlanName : fs::path(given)};
  if (given.empty() && !fs::exists(out.file)) return std::nullopt;
  try {
    auto json = nlohmann::ordered_json::parse(read_file(out.file));
    const auto& step = json.at("prediction").at("step");
    json.at("ranks").get_to(out.ranks);
    step.at("seconds").get_to(out.seconds);
    step.at("compute_seconds").get_to(out.compute);
    step.at("wait_seconds").get_to(out.wait);
    step.at("data_seconds").get_to(out.data);
  } catch (const nlohmann::json::exception& error) {
    DataError damaged("{}: is no plan that `lockstep plan` wrote", out.file.string());
    damaged.set_cause(error.what());
    throw damaged;
  }
  return out;
}

std::string plan_text(const PlannedStep& predicted, const PlannedStep& measured) {
  auto ms = [](double seconds) { return with_commas(std::llround(seconds * 1000)); };
  return fmt::format("plan: predicted {} ms a step ({}), measured {} ms ({}): {:+.1f} %",
                     ms(predicted.seconds), parts_text(predicted), ms(measured.seconds),
                     parts_text(measured), (measured.seconds / predicted.seconds - 1) * 100);
}

PlanObserver::PlanObserver(PlannedStep plan, int ranks, MetricsLog& log)
    : plan_(std::move(plan)), ranks_(ranks), log_(log) {}

void PlanObserver::on_step(const StepRecord& record) {
  if (++seen_ <= kWarmingSteps) return;
  seconds_.push_back(record.seconds);
  compute_.push_back(record.compute_seconds);
  wait_.push_back(record.wait_seconds);
  data_.push_back(record.data_seconds);
}

void PlanObserver::on_end(const std::string&) {
  if (plan_.ranks != ranks_) {
    log_info("plan: {} was made for {} rank{}, these are {}: not compared", plan_.file.string(),
             plan_.ranks, plan_.ranks == 1 ? "" : "s", ranks_);
    return;
  }
  if (seconds_.size() < kFewestSteps) return;
  PlannedStep measured{.ranks = ranks_,
                       .seconds = typical(seconds_),
                       .compute = typical(compute_),
                       .wait = typical(wait_),
                       .data = typical(data_)};
  log_info("{}", plan_text(plan_, measured));
  log_.on_plan(nlohmann::ordered_json{{"file", plan_.file.string()},
                                      {"predicted", parts_json(plan_)},
                                      {"measured", parts_json(measured)},
                                      {"steps", seconds_.size()},
                                      {"error", measured.seconds / plan_.seconds - 1}});
}

}  // namespace lockstep
