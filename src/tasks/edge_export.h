// Writes a translation model for lockstep-translate (edge/edge_file.h).
#pragma once

#include <string>

#include "base/file.h"
#include "data/tokenize/translation_tokenizer.h"
#include "decode/beam_search.h"
#include "models/transformer.h"

namespace lockstep {

struct EdgeExport {
  const Transformer& model;  // on the CPU
  const TranslationTokenizer& vocabulary;
  SpecialIds special;
  BeamOptions decoding;   // what the program does unless told otherwise
  std::string precision;  // "fp32", "bf16" or "int8"
};

// Returns the bytes written. Throws ConfigError when the folder holds a model, MachineError when
// the disk refuses.
int64_t export_edge(const fs::path& folder, const EdgeExport& what);

}  // namespace lockstep
