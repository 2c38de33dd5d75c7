// A Transformer as Hugging Face's transformers keeps it: config.json and model.safetensors, written
// and read (docs/export.md has the mapping).
//
// Pre-norm networks become PegasusForConditionalGeneration, post-norm ones MarianMTModel: both keep
// their table of positions in the file, so that any of ours fits, which M2M100, of the same shape,
// computes for itself and begins at another place.
//
// Pegasus decodes from <pad>, and so does what CTranslate2 makes of it; the exported model pads
// with <s>, which attention masks out anyway. Marian decodes from <pad> too, whose vector is zero
// and whose id is the last: the exported table has one row more than ours, of zeros and with a bias
// that rules it out, and the vector of <s> that our decoder starts with is added to the first of
// the decoder's positions.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/file.h"
#include "models/transformer.h"
#include "nn/parameters.h"

namespace lockstep {

// Names and ids of the special pieces as the exported files give them.
struct ExportedIds {
  int64_t vocabulary = 0;  // rows of the exported table
  int64_t pad = 0, eos = 1, start = 2;
  int64_t bos = 2;  // of ours: what the decoder starts with
};
// `bos` and `eos` are ids of our vocabulary of `vocabulary` pieces.
ExportedIds exported_ids(const TransformerConfig& config, int64_t vocabulary, int64_t bos,
                         int64_t eos);

// Throws ConfigError for a variant that no class of transformers computes.
void check_exportable(const TransformerConfig& config);

// "fp32"; "bf16": matrices in bf16, biases, norms and positions in fp32; "int8": matrices as
// NAME.int8 [out, in] and NAME.scale [out], for lockstep alone.
void write_hugging_face_weights(const fs::path& path, const Transformer& model,
                                const Parameters& parameters, const ExportedIds& ids,
                                const std::string& precision);

// The architecture's keys of config.json.
nlohmann::ordered_json hugging_face_config(const TransformerConfig& config, const ExportedIds& ids,
                                           const std::string& precision);

// What config.json says of a model that lockstep exported.
struct HuggingFaceModel {
  TransformerConfig config;
  int64_t vocabulary = 0;  // of ours
  std::string precision;   // as above
  int64_t beam_size = 4;   // what it was exported to be decoded with
  double length_penalty = 0.6;
};
// True when the folder holds a config.json.
bool is_hugging_face_folder(const fs::path& folder);
// DataError: damaged, or not exported by lockstep.
HuggingFaceModel read_hugging_face_config(const fs::path& folder);
// FOLDER/model.safetensors into the parameters of a network of that configuration. DataError names
// the tensor, expected and found type and shape.
void read_hugging_face_weights(const fs::path& folder, Parameters& parameters);

}  // namespace lockstep
