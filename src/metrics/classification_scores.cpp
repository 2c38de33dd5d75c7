#include "metrics/classification_scores.h"

namespace lockstep {

namespace {

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

ClassificationScores classification_scores(const std::vector<ClassCounts>& counts,
                                           int64_t positive) {
  ClassificationScores out;
  double items = 0, right = 0, classes = 0;
  for (int64_t label = 0; label < std::ssize(counts); ++label) {
    const ClassCounts& of = counts[static_cast<std::size_t>(label)];
    const auto of_class = static_cast<double>(of.items), taken = static_cast<double>(of.taken);
    const auto hits = static_cast<double>(of.right);
    const PrecisionRecall own{share(hits, taken), share(hits, of_class),
                              share(2 * hits, of_class + taken)};
    if (label == positive) out.binary = own;
    items += of_class;
    right += hits;
    if (of_class + taken == 0) continue;
    ++classes;
    auto add = [&](PrecisionRecall& sum, double weight) {
      sum.precision += own.precision * weight;
      sum.recall += own.recall * weight;
      sum.f1 += own.f1 * weight;
    };
    add(out.macro, 1);
    add(out.weighted, of_class);
  }
  auto divide = [](PrecisionRecall& sum, double by) {
    sum.precision = share(sum.precision, by);
    sum.recall = share(sum.recall, by);
    sum.f1 = share(sum.f1, by);
  };
  divide(out.macro, classes);
  divide(out.weighted, items);
  out.accuracy = share(right, items);
  out.micro = {out.accuracy, out.accuracy, out.accuracy};
  return out;
}

ClassificationScores classification_scores(const Confusion& confusion, int64_t positive) {
  std::vector<ClassCounts> counts(static_cast<std::size_t>(confusion.size()));
  for (int64_t label = 0; label < confusion.size(); ++label) {
    counts[label].right = confusion.at(label, label);
    for (int64_t other = 0; other < confusion.size(); ++other) {
      counts[label].items += confusion.at(label, other);
      counts[label].taken += confusion.at(other, label);
    }
  }
  return classification_scores(counts, positive);
}

}  // namespace lockstep
