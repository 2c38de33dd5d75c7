// BERTs as Hugging Face's transformers keeps them: config.json and weights, read and written
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

// What config.json says.
struct BertConfig {
  BertShape shape;
  // By label: id2label. "LABEL_0" and so on where the model was never fine-tuned.
  std::vector<std::string> labels;
  bool regression = false;  // problem_type, or one label
};
// True when it holds a config.json of a BERT.
bool is_bert_folder(const fs::path& folder);
// FOLDER/config.json, or that file. DataError: absent, damaged, of another model than BERT, or of a
// BERT that computes something else (hidden_act, position_embedding_type, ...).
BertConfig read_bert_config(const fs::path& folder);
void write_bert_config(const fs::path& file, const BertConfig& config,
                       const std::string& precision);

// All of a network's weights by the names of BertForSequenceClassification.
std::vector<WeightPlace> bert_places(const Parameters& parameters);

struct BertWeightsRead {
  fs::path file;
  int64_t tensors = 0;             // of the file that were used
  std::vector<std::string> notes;  // what a person should know, a line each: the head was replaced
};
// True when the file holds a BERT by names that read_bert_weights() knows, not those of our own
// checkpoints.
bool holds_bert_weights(const fs::path& file);
// The weights of `file` (formats/weight_files.h) into `parameters`: with or without "bert." and
// outer prefixes as "module.", norms by today's names or as gamma and beta. A classifier for
// another number of labels, or none, and an absent pooler leave ours as initialised; heads for
// other work are not read. DataError, before anything was changed, names the first tensor that is
// missing, too many or of another shape.
BertWeightsRead read_bert_weights(const fs::path& file, Parameters& parameters);

// FOLDER/model.safetensors and, last, FOLDER/config.json; the folder is made where needed.
// `precision` "fp32", or "bf16" for matrices. Returns the bytes of the weights. ConfigError: it
// holds a model.
int64_t write_bert_folder(const fs::path& folder, const BertConfig& config,
                          const Parameters& parameters, const std::string& precision);

}  // namespace lockstep
