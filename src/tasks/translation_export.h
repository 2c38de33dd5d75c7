// A translation model as a folder that others use: transformers, CTranslate2, and `lockstep
// translate` on a machine that has nothing else of the run (docs/export.md).
#pragma once

#include <string>

#include "base/file.h"
#include "tasks/translation.h"

namespace lockstep {

struct ExportOptions {
  fs::path folder;                 // is made; holds no config.json yet
  std::string precision = "fp32";  // "fp32", "bf16" or "int8" (models/hugging_face.h)
  fs::path run_folder;             // whose corpus.json names the languages, where there is one
};

// Writes weights, configuration and tokenizer; config.json last, so that a folder that has one is
// complete. Returns the bytes written. ConfigError: a variant that cannot be exported, a folder
// that holds a model; MachineError when the disk refuses.
int64_t export_translation(Translation& task, const ExportOptions& options);

}  // namespace lockstep
