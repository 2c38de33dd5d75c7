// Writes a translation model for lockstep-translate (edge/edge_file.h).
#pragma once

#include <string>

#include "base/file.h"
#include "data/tokenize/subword.h"
#include "decode/beam_search.h"
#include "models/transformer.h"

namespace lockstep {

struct EdgeExport {
  const Transformer& model;  // on the CPU
  const Subword& subword;
  BeamOptions decoding;   // what the program does unless told otherwise
  std::string precision;  // "fp32", "bf16" or "int8"
};

// Returns the bytes written. Throws ConfigError when the folder holds a model or the program could
// not compute this one, MachineError when the disk refuses.
int64_t export_edge(const fs::path& folder, const EdgeExport& what);

}  // namespace lockstep
