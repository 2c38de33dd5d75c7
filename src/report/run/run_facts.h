// Reads all files of a run folder but its metrics, as a report needs them: configuration, versions,
// the newest state of its ranks, the launcher's events, checkpoints with their files and tensors,
// facts about the data, samples, and warnings from rank 0's log. Absent files give absent values.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

struct CheckpointFile {
  std::string name;
  double bytes = 0;
};

// Tensors of one part of the network: "encoder", "layer3", "embedding".
struct NetworkPart {
  std::string name;
  int64_t tensors = 0, numbers = 0;
  int64_t matrix_numbers = 0;  // in matrices: two dimensions or more
};

struct CheckpointFacts {
  std::string name;  // "step_900"
  fs::path folder;
  std::vector<CheckpointFile> files;  // without DONE, the largest first
  double bytes = 0;                   // of all of them
};

// What the weights of the newest complete checkpoint show.
struct WeightFacts {
  int64_t numbers = 0, buffers = 0;  // trained; running statistics
  double bytes_each = 4;
  std::vector<NetworkPart> parts;
  std::vector<std::pair<std::string, std::vector<int64_t>>> tensors;  // name and shape
};

// Lengths on one side of the training text, or overall.
struct LengthFacts {
  std::string name;  // "source", "target"
  int64_t items = 0;
  double mean = 0, median = 0, p95 = 0, longest = 0;  // tokens
};
struct VocabularyFacts {
  int64_t size = 0, used = 0, unknown = 0, tokens = 0;
  int64_t pairs = 0, of_pairs = 0;  // pairs read, of all: the first ones, which are shuffled
};

struct DataFacts {
  nlohmann::json manifest;  // null: none
  fs::path source;          // the manifest's file
  fs::path folder;          // of the data, as the configuration names it
  std::vector<LengthFacts> lengths;
  std::optional<VocabularyFacts> vocabulary;
};

struct RunSample {
  std::string source, reference, output;
};

struct RunFacts {
  fs::path folder;
  std::map<std::string, std::string> config;  // by key, as people write it
  std::vector<std::pair<std::string, std::string>> versions;
  nlohmann::json live;  // null: no heartbeats
  nlohmann::json plan;  // plan.json
  std::vector<nlohmann::json> launch;
  std::vector<CheckpointFacts> checkpoints;  // complete, oldest first
  std::optional<WeightFacts> weights;
  DataFacts data;
  std::vector<RunSample> samples;  // of the newest evaluation
  int64_t samples_step = 0;
  std::vector<std::string> warnings;  // lines of rank 0's log about slow ranks, silence, overflow
  std::vector<std::pair<std::string, std::string>> errors;  // rank files logs/rankNN.error
  std::vector<std::string> configs;  // config.1.toml ...: before resumes that changed it

  std::string value(const std::string& key, const std::string& otherwise = "") const;
  double number(const std::string& key, double otherwise = 0) const;
  int ranks() const;  // 1 when unknown
  int hosts() const;
  bool failed() const;  // as live.json says
  // Returns what a target is: "tok", "img", ...
  std::string unit() const;
};

// Throws ConfigError for a folder without config.toml, DataError for damaged files.
RunFacts read_facts(const fs::path& folder);
// Reads only configuration, live state, the launcher's events, and rank 0's log.
RunFacts read_state_facts(const fs::path& folder);

}  // namespace lockstep
