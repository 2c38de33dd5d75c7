// Encodes what TensorBoard's page HPARAMS shows of a run. Its plugin (tensorboard/plugins/hparams,
// plugin_data.proto and api.proto) expects messages in the metadata of three summaries.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace lockstep {

using HyperValue = std::variant<bool, double, std::string>;

struct HyperParameters {
  std::vector<std::pair<std::string, HyperValue>> values;  // by name; names are unique
  std::vector<std::string> metrics;                        // tags of scalars: "eval/bleu"
  std::set<std::string> first = {};  // names of values to show before the others
};

enum class SessionStatus { kUnknown = 0, kSuccess = 1, kFailure = 2, kRunning = 3 };

// The tags of the three summaries.
inline constexpr const char* kExperimentTag = "_hparams_/experiment";
inline constexpr const char* kSessionStartTag = "_hparams_/session_start_info";
inline constexpr const char* kSessionEndTag = "_hparams_/session_end_info";

// The functions below return the plugin data of the three summaries (HParamsPluginData). Times are
// in seconds since 1970. This one lists the names and metrics that exist:
std::string encode_experiment(const HyperParameters& run, double created_seconds);
// This one holds the values of the run:
std::string encode_session_start(const HyperParameters& run, double start_seconds);
std::string encode_session_end(SessionStatus status, double end_seconds);

}  // namespace lockstep
