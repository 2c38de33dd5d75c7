#include "train/folder/run_position.h"

#include <nlohmann/json.hpp>

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const MetricHistory& history) {
  Json best = Json::array();
  for (const RankedStep& b : history.best) best.push_back({{"step", b.step}, {"value", b.value}});
  return {{"metric", history.metric}, {"stalled", history.stalled}, {"best", best}};
}

MetricHistory history_from_json(const Json& json) {
  MetricHistory out{.metric = json.at("metric"), .stalled = json.at("stalled")};
  for (const Json& b : json.at("best")) out.best.push_back({b.at("step"), b.at("value")});
  return out;
}

Json to_json(const BatchSize& size) { return {{"size", size.size}, {"items", size.items}}; }

BatchSize size_from_json(const Json& json) { return {json.at("size"), json.at("items")}; }

}  // namespace

Json to_json(const RunPosition& p) {
  Json validation = Json::array();
  for (const MetricHistory& history : p.validation) validation.push_back(to_json(history));
  Json out = {{"step", p.step},
              {"epoch", p.epoch},
              {"step_in_epoch", p.step_in_epoch},
              {"targets_seen", p.targets_seen},
              {"evaluated_step", p.evaluated_step},
              {"validation", validation}};
  if (p.step_size.size > 0) out["step_size"] = to_json(p.step_size);
  for (const EpochStretch& stretch : p.done) {
    out["done"].push_back({{"steps", stretch.steps}, {"each", to_json(stretch.each)}});
  }
  if (p.schedule_shift != 0) out["schedule_shift"] = p.schedule_shift;
  return out;
}

RunPosition position_from_json(const Json& json) {
  RunPosition p{.step = json.at("step"),
                .epoch = json.at("epoch"),
                .step_in_epoch = json.at("step_in_epoch"),
                .targets_seen = json.at("targets_seen"),
                .evaluated_step = json.at("evaluated_step")};
  for (const Json& history : json.at("validation")) {
    p.validation.push_back(history_from_json(history));
  }
  if (json.contains("step_size")) p.step_size = size_from_json(json.at("step_size"));
  for (const Json& stretch : json.value("done", Json::array())) {
    p.done.push_back({stretch.at("steps"), size_from_json(stretch.at("each"))});
  }
  p.schedule_shift = json.value("schedule_shift", int64_t{0});
  return p;
}

}  // namespace lockstep
