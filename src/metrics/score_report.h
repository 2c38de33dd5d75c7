// Prints scores like sacreBLEU 2.6.0: as lines of text, as JSON, and as tables of several systems.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "metrics/metric.h"
#include "metrics/resampling.h"

namespace lockstep {

struct ScoreStyle {
  int decimals = 1;
  bool brief = false;       // short signatures
  bool score_only = false;  // print only the number
  bool color = false;       // print p-values above 0.05 in red
};

// The score of one system by one metric.
struct ScoreResult {
  std::string name;
  double score = 0;
  std::string details;
  std::vector<SignaturePart> signature;
  std::optional<Confidence> confidence;
};

ScoreResult make_result(const TextMetric& metric, std::span<const double> sums,
                        const SignatureContext& context);

// Returns "BLEU|nrefs:1|... = 32.4 (μ = 32.3 ± 1.0) 66.0/40.1/26.2/17.5 (BP = ...".
std::string score_line(const ScoreResult& result, const ScoreStyle& style);
// Returns the lines of several metrics with aligned equals signs.
std::string score_lines(const std::vector<ScoreResult>& results, const ScoreStyle& style);
// Returns a JSON object, or a list of objects for several metrics.
std::string score_json(const std::vector<ScoreResult>& results, const ScoreStyle& style);
std::string score_json_line(const ScoreResult& result, const ScoreStyle& style);

// The scores of several systems. If there is a test, the first system is its baseline.
struct SystemTable {
  struct Column {
    std::string metric;
    std::vector<SignaturePart> signature;
    std::vector<PairedResult> results;  // one per system
  };
  std::vector<std::string> systems;
  std::vector<Column> columns;
  std::optional<PairedTest> test;
  int64_t trials = 0;
};
std::string table_text(const SystemTable& table, const ScoreStyle& style);
std::string table_json(const SystemTable& table, const ScoreStyle& style);

}  // namespace lockstep
