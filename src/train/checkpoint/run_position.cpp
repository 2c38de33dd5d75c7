#include "train/checkpoint/run_position.h"

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

}  // namespace

Json to_json(const RunPosition& p) {
  Json validation = Json::array();
  for (const MetricHistory& history : p.validation) validation.push_back(to_json(history));
  return {{"step", p.step},
          {"epoch", p.epoch},
          {"step_in_epoch", p.step_in_epoch},
          {"targets_seen", p.targets_seen},
          {"evaluated_step", p.evaluated_step},
          {"validation", validation}};
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
  return p;
}

}  // namespace lockstep
