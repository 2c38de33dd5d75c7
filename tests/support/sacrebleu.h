// Computes with the sacreBLEU package cases of {metric, hypotheses, references, options}.
#pragma once

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "support/python.h"

namespace lockstep {

// Returns the package's scores for each case; see tests/parity/sacrebleu_scores.py.
inline nlohmann::json sacrebleu_scores(const nlohmann::json& cases) {
  TemporaryFolder folder;
  write_file(folder.path() / "cases.json", cases.dump());
  PythonResult result =
      run_parity_script("sacrebleu_scores.py", "'" + (folder.path() / "cases.json").string() + "'");
  if (result.status != 0) throw DataError("sacrebleu_scores.py: {}", result.errors);
  return nlohmann::json::parse(result.output);
}

}  // namespace lockstep
