#include "formats/hyper_parameters.h"

#include "formats/protobuf.h"

namespace lockstep {

namespace {

using protozero::pbf_writer;

// The field numbers of plugin_data.proto, api.proto and google/protobuf/struct.proto.
namespace field {
constexpr uint32_t kExperiment = 2, kSessionStart = 3, kSessionEnd = 4;  // of HParamsPluginData
constexpr uint32_t kCreated = 3, kHyperInfo = 4, kMetricInfo = 5;        // of Experiment
constexpr uint32_t kInfoName = 1, kInfoType = 4, kInfoDiffers = 7;       // of HParamInfo
constexpr uint32_t kMetricName = 1, kNameTag = 2;           // of MetricInfo and its MetricName
constexpr uint32_t kStartValues = 1, kStartSeconds = 5;     // of SessionStartInfo
constexpr uint32_t kEndStatus = 1, kEndSeconds = 2;         // of SessionEndInfo
constexpr uint32_t kMapKey = 1, kMapValue = 2;              // of an entry of a map
constexpr uint32_t kNumber = 2, kString = 3, kBoolean = 4;  // of google.protobuf.Value
}  // namespace field

enum DataType { kTypeString = 1, kTypeBool = 2, kTypeFloat64 = 3 };  // of api.proto

DataType type_of(const HyperValue& value) {
  if (std::holds_alternative<bool>(value)) return kTypeBool;
  return std::holds_alternative<double>(value) ? kTypeFloat64 : kTypeString;
}

// A member of a oneof is written even when it is zero.
void put_value(const HyperValue& value, pbf_writer& out) {
  if (auto yes = std::get_if<bool>(&value)) {
    out.add_bool(field::kBoolean, *yes);
  } else if (auto number = std::get_if<double>(&value)) {
    out.add_double(field::kNumber, *number);
  } else {
    out.add_string(field::kString, std::get<std::string>(value));
  }
}

}  // namespace

std::string encode_experiment(const HyperParameters& run, double created_seconds) {
  std::string out;
  pbf_writer data(out);
  pbf_writer experiment(data, field::kExperiment);
  experiment.add_double(field::kCreated, created_seconds);
  for (const auto& [name, value] : run.values) {
    pbf_writer info(experiment, field::kHyperInfo);
    info.add_string(field::kInfoName, name);
    info.add_enum(field::kInfoType, type_of(value));
    // TensorBoard sorts by this flag and selects the first few.
    if (run.first.count(name) > 0) info.add_bool(field::kInfoDiffers, true);
  }
  for (const std::string& tag : run.metrics) {
    pbf_writer info(experiment, field::kMetricInfo);
    pbf_writer(info, field::kMetricName).add_string(field::kNameTag, tag);
  }
  experiment.commit();
  return out;
}

std::string encode_session_start(const HyperParameters& run, double start_seconds) {
  std::string out;
  pbf_writer data(out);
  pbf_writer start(data, field::kSessionStart);
  for (const auto& [name, value] : run.values) {
    pbf_writer entry(start, field::kStartValues);
    entry.add_string(field::kMapKey, name);
    pbf_writer encoded(entry, field::kMapValue);
    put_value(value, encoded);
  }
  start.add_double(field::kStartSeconds, start_seconds);
  start.commit();
  return out;
}

std::string encode_session_end(SessionStatus status, double end_seconds) {
  std::string out;
  pbf_writer data(out);
  pbf_writer end(data, field::kSessionEnd);
  end.add_enum(field::kEndStatus, static_cast<int32_t>(status));
  end.add_double(field::kEndSeconds, end_seconds);
  end.commit();
  return out;
}

}  // namespace lockstep
