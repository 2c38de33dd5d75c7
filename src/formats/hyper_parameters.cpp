#include "formats/hyper_parameters.h"

#include "formats/proto_message.h"

namespace lockstep {

namespace {

// Field numbers of plugin_data.proto, api.proto and google/protobuf/struct.proto.
namespace field {
constexpr int kExperiment = 2, kSessionStart = 3, kSessionEnd = 4;  // of HParamsPluginData
constexpr int kCreated = 3, kHyperInfo = 4, kMetricInfo = 5;        // of Experiment
constexpr int kInfoName = 1, kInfoType = 4, kInfoDiffers = 7;       // of HParamInfo
constexpr int kMetricName = 1, kNameTag = 2;           // of MetricInfo and its MetricName
constexpr int kStartValues = 1, kStartSeconds = 5;     // of SessionStartInfo
constexpr int kEndStatus = 1, kEndSeconds = 2;         // of SessionEndInfo
constexpr int kMapKey = 1, kMapValue = 2;              // of an entry of a map
constexpr int kNumber = 2, kString = 3, kBoolean = 4;  // of google.protobuf.Value
}  // namespace field

enum DataType { kTypeString = 1, kTypeBool = 2, kTypeFloat64 = 3 };  // of api.proto

DataType type_of(const HyperValue& value) {
  if (std::holds_alternative<bool>(value)) return kTypeBool;
  return std::holds_alternative<double>(value) ? kTypeFloat64 : kTypeString;
}

// A member of a oneof is written even when it is zero.
ProtoWriter encode_value(const HyperValue& value) {
  ProtoWriter out;
  if (auto yes = std::get_if<bool>(&value)) {
    out.integer(field::kBoolean, *yes ? 1 : 0);
  } else if (auto number = std::get_if<double>(&value)) {
    out.real(field::kNumber, *number);
  } else {
    out.bytes(field::kString, std::get<std::string>(value));
  }
  return out;
}

HyperValue decode_value(std::string_view message) {
  ProtoReader reader(message);
  for (ProtoField f; reader.next(f);) {
    if (f.is(field::kBoolean, ProtoField::kVarint)) return f.integer != 0;
    if (f.is(field::kNumber, ProtoField::kFixed64)) return f.real();
    if (f.is(field::kString, ProtoField::kBytes)) return std::string(f.bytes);
  }
  throw MalformedProto{};
}

}  // namespace

std::string encode_experiment(const HyperParameters& run, double created_seconds) {
  ProtoWriter experiment;
  experiment.real(field::kCreated, created_seconds);
  for (const auto& [name, value] : run.values) {
    ProtoWriter info;
    info.bytes(field::kInfoName, name).integer(field::kInfoType, type_of(value));
    // TensorBoard sorts by it, and ticks the first few.
    if (run.first.count(name) > 0) info.integer(field::kInfoDiffers, 1);
    experiment.message(field::kHyperInfo, info);
  }
  for (const std::string& tag : run.metrics) {
    ProtoWriter name, info;
    name.bytes(field::kNameTag, tag);
    info.message(field::kMetricName, name);
    experiment.message(field::kMetricInfo, info);
  }
  return ProtoWriter().message(field::kExperiment, experiment).text();
}

std::string encode_session_start(const HyperParameters& run, double start_seconds) {
  ProtoWriter start;
  for (const auto& [name, value] : run.values) {
    ProtoWriter entry;
    entry.bytes(field::kMapKey, name).message(field::kMapValue, encode_value(value));
    start.message(field::kStartValues, entry);
  }
  start.real(field::kStartSeconds, start_seconds);
  return ProtoWriter().message(field::kSessionStart, start).text();
}

std::string encode_session_end(SessionStatus status, double end_seconds) {
  ProtoWriter end;
  end.integer(field::kEndStatus, static_cast<int64_t>(status));
  end.real(field::kEndSeconds, end_seconds);
  return ProtoWriter().message(field::kSessionEnd, end).text();
}

std::vector<std::pair<std::string, HyperValue>> decode_session_start(std::string_view data) {
  std::vector<std::pair<std::string, HyperValue>> out;
  ProtoReader reader(find_proto_bytes(data, field::kSessionStart));
  for (ProtoField f; reader.next(f);) {
    if (!f.is(field::kStartValues, ProtoField::kBytes)) continue;
    out.emplace_back(find_proto_bytes(f.bytes, field::kMapKey),
                     decode_value(find_proto_bytes(f.bytes, field::kMapValue)));
  }
  return out;
}

}  // namespace lockstep
