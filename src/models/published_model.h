// Reads and writes translation models that others published, as transformers stores them: Marian
// (MarianMTModel) and M2M100 (M2M100ForConditionalGeneration; NLLB-200 has the same network). The
// classes of transformers 4.57 define what is computed; docs/translation.md says what is held.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "models/transformer.h"
#include "nn/parameters.h"

namespace lockstep {

// What config.json and generation_config.json say. The latter wins where both do.
struct PublishedModel {
  std::string type;          // model_type: "marian", "m2m_100"
  TransformerConfig config;  // dropouts are theirs
  int64_t vocabulary = 0;    // rows of the decoder's table
  int32_t pad = 0, eos = 0;
  int32_t start = 0;                  // decoder_start_token_id
  std::optional<int32_t> forced_bos;  // the first token of every translation
  std::vector<int32_t> never;         // ids that are never produced, ascending
  bool ends_at_limit = false;         // </s> is forced at max_length
  bool renormalizes = false;          // probabilities are those without these ids
  // How transformers decodes with it unless told.
  std::optional<int64_t> beam_size, max_length;  // absent: nothing is said
  int64_t min_length = 0;
  double length_penalty = 1;
  bool early_stopping = false;
  // The files themselves; generation_config.json may be empty.
  std::string config_json, generation_json;

  // Rows of the encoder's table.
  int64_t source_vocabulary() const {
    return config.variant.own_source_table ? config.variant.source_pieces : vocabulary;
  }
};

// The names under which a run keeps config.json: that name would mark an exported model.
inline constexpr const char* kNetworkOfRun = "network.json";
inline constexpr const char* kGenerationFile = "generation_config.json";

// Whether the folder has a config.json that lockstep did not write.
bool is_published_model(const fs::path& folder);

// `config`: a config.json; generation_config.json is looked for beside it. Throws DataError when it
// is damaged, of a network that is not held (with those that are), or of one with values that
// lockstep does not compute.
PublishedModel read_published_model(const fs::path& config);

// Reads the weights (formats/weight_files.h) beside config.json into the parameters of that
// network. Throws DataError that names the first tensor that is missing, unknown or of another
// shape (expected and found); the parameters are then as before. Returns what the user should know,
// a line each.
std::vector<std::string> read_published_weights(const fs::path& folder, const PublishedModel& model,
                                                Parameters& parameters);

// Writes model.safetensors into the folder, which exists, then its config.json with the precision,
// "fp32" or "bf16" (matrices). Returns the bytes of the weights.
int64_t write_published_model(const fs::path& folder, const PublishedModel& model,
                              const Parameters& parameters, const std::string& precision);

}  // namespace lockstep
