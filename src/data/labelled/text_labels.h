// Maps labels as files write them to class numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep {

class ClassNumbers {
 public:
  // `given` contains the classes in order; files may then use their names or their numbers from 0.
  // If it is empty, the classes are learned from the first labels.
  explicit ClassNumbers(std::vector<std::string> given);

  // Returns the number of a label. While learning, new labels get the next number. Afterwards it
  // throws DataError, with `place`, for an unknown label.
  int32_t of(const std::string& label, const std::string& place);
  bool knows(const std::string& label) const { return find(label).has_value(); }

  bool learning() const { return learning_; }
  // Ends learning: sorts the classes by bytes, or by value when all are whole numbers. Returns the
  // final number of each number given so far.
  std::vector<int32_t> settle();
  const std::vector<std::string>& classes() const { return classes_; }

 private:
  std::optional<int32_t> find(const std::string& label) const;
  void index();

  bool learning_;
  bool by_number_ = false;  // numbers from 0 stand for classes, whose names were given
  std::vector<std::string> classes_;
  std::unordered_map<std::string, int32_t> numbers_;
};

// Parses a label that is a value. Throws DataError, with `place`, when it is not a finite number.
float parse_value(const std::string& label, const std::string& place);

// Returns whether a label means that the label is unknown, as in test sets.
bool is_no_label(const std::string& label);  // empty, "-1"

}  // namespace lockstep
