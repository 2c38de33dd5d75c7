// Writes and reads a Transformer as Hugging Face's transformers stores it: config.json and
// model.safetensors (docs/export.md has the mapping).
//
// Pre-norm networks become PegasusForConditionalGeneration, post-norm ones MarianMTModel: both keep
// their table of positions in the file, so that any of ours fits. M2M100, which has the same shape,
// computes its table itself and starts at another position.
//
// Pegasus decodes from <pad>, and so does what CTranslate2 makes of it; the exported model pads
// with <s>, which attention masks out anyway. Marian decodes from <pad> too, but its <pad> has a
// vector of zeros and the last id. The exported table therefore has one row more than ours, of
// zeros and with a bias that rules it out, and the vector of <s>, with which our decoder starts, is
// added to the first of the decoder's positions.
//
// With start = "zero" (pre-norm only) the table has rows behind ours: one of zeros, from which the
// decoder starts and with which it pads, and those of M2M100's language codes. The first of these
// is a copy of <s>, because M2M100's tokenizer can put a code before each source, where <s>
// belongs. No row behind ours is ever produced: their logits have a bias. A norm_epsilon other than
// that of transformers is folded into the weights of a pre-norm network: norms see c * x where ours
// see x, c^2 being the ratio of the two.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/file.h"
#include "models/transformer.h"
#include "nn/parameters.h"

namespace lockstep {

// Ids of the special pieces in the exported files.
struct ExportedIds {
  int64_t vocabulary = 0;  // rows of the exported table
  int64_t pad = 0, eos = 1, start = 2;
  int64_t bos = 2;      // id of ours with which the decoder starts
  int64_t prefix = -1;  // id before each source, a copy of bos; -1: sources begin with their pieces

  bool starts_with_zero() const { return prefix >= 0; }
};

// The codes of M2M100's tokenizer with language_codes = "wmt21", in their order.
inline constexpr int64_t kLanguageCodes = 8;
// `bos` and `eos` are ids of our vocabulary, which has `vocabulary` pieces.
ExportedIds exported_ids(const TransformerConfig& config, int64_t vocabulary, int64_t bos,
                         int64_t eos);

// Throws ConfigError for a variant that no class of transformers computes.
void check_exportable(const TransformerConfig& config);

// Writes the weights. `precision` is "fp32"; "bf16": matrices in bf16, biases, norms and positions
// in fp32; or "int8": matrices as NAME.int8 [out, in] and NAME.scale [out], for lockstep only.
void write_hugging_face_weights(const fs::path& path, const Transformer& model,
                                const Parameters& parameters, const ExportedIds& ids,
                                const std::string& precision);

// Returns the keys of config.json that describe the architecture.
nlohmann::ordered_json hugging_face_config(const TransformerConfig& config, const ExportedIds& ids,
                                           const std::string& precision);

// The contents of the config.json of a model that lockstep exported.
struct HuggingFaceModel {
  TransformerConfig config;
  int64_t vocabulary = 0;  // size of our vocabulary
  std::string precision;   // as above
  int64_t beam_size = 4;   // default for decoding, set at the export
  double length_penalty = 0.6;
};
// Whether the folder has a config.json.
bool is_hugging_face_folder(const fs::path& folder);
// Throws DataError when the file is damaged or was not exported by lockstep.
// `folder` has a config.json, or is one.
HuggingFaceModel read_hugging_face_config(const fs::path& folder);
// Reads FOLDER/model.safetensors into the parameters of a network of that configuration. Throws
// DataError that names the tensor, and its expected and found type and shape.
void read_hugging_face_weights(const fs::path& folder, Parameters& parameters);

}  // namespace lockstep
