#include "train/folder/run_measurement.h"

#include <nlohmann/json.hpp>

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// Lists the names once for both directions: calls `f(name, member)`.
template <class M, class F>
void each_field(M& m, const F& f) {
  f("unit", m.unit);
  f("device", m.device);
  f("precision", m.precision);
  f("hook", m.hook);
  f("ranks", m.ranks);
  f("of_ranks", m.of_ranks);
  f("threads", m.threads);
  f("sharded", m.sharded);
  f("wire_factor", m.wire_factor);
  f("local_steps", m.local_steps);
  f("streams", m.streams);
  f("weights", m.weights);
  f("gradient_bytes", m.gradient_bytes);
  f("matrix_sides", m.matrix_sides);
  f("other_numbers", m.other_numbers);
  f("steps_in_epoch", m.steps_in_epoch);
  f("targets_per_step", m.targets_per_step);
  f("length_steps", m.length.steps);
  f("length_epochs", m.length.epochs);
  f("length_minutes", m.length.minutes);
  f("evaluation_every", m.length.evaluation_every);
  f("evaluation_limit", m.length.evaluation_limit);
  f("evaluation_split", m.evaluation_split);
  f("evaluation_first_seconds", m.evaluation_first_seconds);
  f("evaluation_each_seconds", m.evaluation_each_seconds);
  f("checkpoint_every", m.length.checkpoint_every);
  f("checkpoints_kept", m.length.checkpoints_kept);
  f("checkpoint_bytes", m.checkpoint_bytes);
  f("checkpoint_seconds", m.checkpoint_seconds);
  f("held_seconds", m.held_seconds);
  f("peak_bytes", m.peak_bytes);
}

}  // namespace

Json to_json(const RunMeasurement& measurement) {
  Json out;
  each_field(measurement, [&](const char* name, const auto& value) { out[name] = value; });
  for (const MeasuredStep& s : measurement.steps) {
    out["steps"].push_back({{"seconds", s.seconds},
                            {"compute", s.compute},
                            {"wait", s.wait},
                            {"data", s.data},
                            {"targets", s.targets}});
  }
  out["buckets"] = Json::array();
  for (const MeasuredBucket& b : measurement.buckets) {
    out["buckets"].push_back({{"bytes", b.bytes}, {"ready_seconds", b.ready_seconds}});
  }
  return out;
}

RunMeasurement measurement_from_json(const Json& json) {
  RunMeasurement out;
  each_field(out, [&](const char* name, auto& value) { json.at(name).get_to(value); });
  for (const Json& s : json.at("steps")) {
    out.steps.push_back(
        {s.at("seconds"), s.at("compute"), s.at("wait"), s.at("data"), s.at("targets")});
  }
  for (const Json& b : json.at("buckets")) {
    out.buckets.push_back({b.at("bytes"), b.at("ready_seconds")});
  }
  return out;
}

}  // namespace lockstep
