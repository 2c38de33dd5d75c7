#include "tasks/classification_figures.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

const char* const kEndings[] = {"", "_macro", "_weighted", "_micro"};

void add_scores(const std::string& ending, const PrecisionRecall& scores, Evaluation& out) {
  out.metrics["precision" + ending] = scores.precision;
  out.metrics["recall" + ending] = scores.recall;
  out.metrics["f1" + ending] = scores.f1;
}

}  // namespace

void append_class_metrics(std::vector<MetricKind>& kinds) {
  for (const std::string ending : kEndings) {
    for (const char* name : {"f1", "precision", "recall"}) kinds.push_back({name + ending, true});
  }
}

void add_class_metrics(const ClassificationScores& scores, int64_t classes, Evaluation& out) {
  add_scores("", classes == 2 ? scores.binary : scores.macro, out);
  add_scores("_macro", scores.macro, out);
  add_scores("_weighted", scores.weighted, out);
  add_scores("_micro", scores.micro, out);
}

int64_t positive_label(const std::vector<std::string>& classes, const std::string& wanted,
                       const std::string& key) {
  if (wanted.empty()) return std::ssize(classes) == 2 ? 1 : 0;
  const auto at = std::find(classes.begin(), classes.end(), wanted);
  if (at != classes.end()) return at - classes.begin();
  std::string names = join(classes, ", ");
  if (classes.size() > 20) names = fmt::format("it has {} classes", classes.size());
  throw ConfigError("{}: no class \"{}\"{} ({})", key, wanted, did_you_mean(wanted, classes),
                    names);
}

}  // namespace lockstep
