// What a classifier took for what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct Confusion {
  std::vector<std::string> classes;
  std::vector<int64_t> counts;  // [true class, class it was taken for]

  explicit Confusion(std::vector<std::string> names)
      : classes(std::move(names)), counts(classes.size() * classes.size()) {}

  int64_t size() const { return std::ssize(classes); }
  int64_t& at(int64_t label, int64_t taken_for) { return counts[label * size() + taken_for]; }
  int64_t at(int64_t label, int64_t taken_for) const { return counts[label * size() + taken_for]; }
};

// Of the items of a class. A share is 0 where there is nothing to divide by.
struct ClassScore {
  int64_t items = 0;
  double recall = 0;     // share that was recognised: the class's accuracy
  double precision = 0;  // share of what was taken for the class that is of it
};
ClassScore class_score(const Confusion& confusion, int64_t label);

struct Mistake {
  int64_t label = 0, taken_for = 0, items = 0;
};
// The `most` most frequent ones, most frequent first.
std::vector<Mistake> frequent_mistakes(const Confusion& confusion, int64_t most);

}  // namespace lockstep
