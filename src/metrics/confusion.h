// The confusion matrix of a classifier.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct Confusion {
  std::vector<std::string> classes;
  std::vector<int64_t> counts;  // [true class, predicted class]

  explicit Confusion(std::vector<std::string> names)
      : classes(std::move(names)), counts(classes.size() * classes.size()) {}

  int64_t size() const { return std::ssize(classes); }
  int64_t& at(int64_t label, int64_t taken_for) { return counts[label * size() + taken_for]; }
  int64_t at(int64_t label, int64_t taken_for) const { return counts[label * size() + taken_for]; }
};

// The scores of one class. A ratio is 0 where its denominator is 0.
struct ClassScore {
  int64_t items = 0;
  double recall = 0;     // share of its items that were predicted right: its accuracy
  double precision = 0;  // share of the items predicted as this class that belong to it
  double f1 = 0;         // harmonic mean of both
};
ClassScore class_score(const Confusion& confusion, int64_t label);

struct Mistake {
  int64_t label = 0, taken_for = 0, items = 0;
};
// Returns the `most` most frequent mistakes, most frequent first.
std::vector<Mistake> frequent_mistakes(const Confusion& confusion, int64_t most);

}  // namespace lockstep
