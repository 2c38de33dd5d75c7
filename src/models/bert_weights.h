// Reads and writes BERTs as Hugging Face's transformers stores them: config.json and weights
// (docs/text.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "models/bert.h"
#include "models/weight_transfer.h"
#include "nn/parameters.h"

namespace lockstep {

// The contents of config.json.
struct BertConfig {
  BertShape shape;
  // Names by label, from id2label; "LABEL_0" and so on where the model was never fine-tuned.
  std::vector<std::string> labels;
  bool regression = false;  // by problem_type, or because there is one label
};
// Whether the folder has the config.json of a BERT.
bool is_bert_folder(const fs::path& folder);
// Reads FOLDER/config.json, or that file itself. Throws DataError when it is absent, damaged, of
// another model than BERT, or of a BERT that computes something else (hidden_act,
// position_embedding_type, ...).
BertConfig read_bert_config(const fs::path& folder);
void write_bert_config(const fs::path& file, const BertConfig& config,
                       const std::string& precision);

// Returns the places of all weights of a network in BertForSequenceClassification, by its names.
std::vector<WeightPlace> bert_places(const Parameters& parameters);

struct BertWeightsRead {
  fs::path file;
  int64_t tensors = 0;             // used tensors of the file
  std::vector<std::string> notes;  // what the user should know, a line each: the head was replaced
};
// Whether the file holds a BERT by names that read_bert_weights() knows, which those of our own
// checkpoints are not.
bool holds_bert_weights(const fs::path& file);
// Reads the weights of `file` (formats/weight_files.h) into `parameters`: with or without "bert."
// and outer prefixes such as "module.", norms by current names or as gamma and beta. If the
// classifier is absent or has another number of labels, or the pooler is absent, ours stay as
// initialised. Heads for other tasks are not read. Throws DataError, before anything was changed,
// that names the first tensor that is missing, unknown or of another shape.
BertWeightsRead read_bert_weights(const fs::path& file, Parameters& parameters);

// Writes FOLDER/model.safetensors and, last, FOLDER/config.json, creating the folder if needed.
// `precision` is "fp32", or "bf16" for matrices. Returns the bytes of the weights. Throws
// ConfigError when the folder holds a model.
int64_t write_bert_folder(const fs::path& folder, const BertConfig& config,
                          const Parameters& parameters, const std::string& precision);

}  // namespace lockstep
