// Labels as files write them, and the numbers of their classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep {

class ClassNumbers {
 public:
  // `given`: the classes in order, of which a file may have the names or the numbers from 0. Empty:
  // learned from the labels that come first.
  explicit ClassNumbers(std::vector<std::string> given);

  // The number of a label. While learning it counts them as they come; afterwards it throws
  // DataError, at `place`, for one that is not known.
  int32_t of(const std::string& label, const std::string& place);
  bool knows(const std::string& label) const { return find(label).has_value(); }

  bool learning() const { return learning_; }
  // Ends learning: classes sorted by bytes, or by value when all are whole numbers. The final
  // number of each number given so far.
  std::vector<int32_t> settle();
  const std::vector<std::string>& classes() const { return classes_; }

 private:
  std::optional<int32_t> find(const std::string& label) const;
  void index();

  bool learning_;
  bool by_number_ = false;  // a number from 0 stands for a class: names were given for them
  std::vector<std::string> classes_;
  std::unordered_map<std::string, int32_t> numbers_;
};

// A label that is a value. Throws DataError, at `place`, for what is no finite number.
float parse_value(const std::string& label, const std::string& place);

// How test sets say that a label is not known.
bool is_no_label(const std::string& label);  // empty, "-1"

}  // namespace lockstep
