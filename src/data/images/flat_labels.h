// Reads the classes of images that have no folders of their classes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

// Which columns of tables are meant, and what labels that are numbers stand for.
struct ImageColumns {
  std::string image, label;  // empty: found by type, and by usual names
  // Names by label and column, where the files themselves name none (the card of a data set).
  std::map<std::string, std::vector<std::string>> class_names;
};

// Returns the class that the name of a file begins with: what stands before the number at its end,
// as "cat" of cat.0.jpg, "great_pyrenees" of great_pyrenees_12.jpg. Empty when there is none.
std::string class_of_file_name(const std::string& file);

// The classes of the files of a flat folder. Lines of a list are "FILE CLASS", or just "CLASS":
// then line n belongs to the file whose name ends in the number n (ILSVRC2012_val_00000001.JPEG). A
// csv or tsv has a header; its files may lack their endings ("img7" of img7.jpg), and of Kaggle's
// PredictionString the first word is the class.
class FlatLabels {
 public:
  FlatLabels() = default;
  // Throws DataError with the line number. `columns` are those of a table; empty ones have
  // usual names, else the file is the first, and the label the other of two.
  explicit FlatLabels(const fs::path& list, const ImageColumns& columns = {});
  // Without a list: class_of_file_name() of each file.
  static FlatLabels by_file_names();
  bool empty() const { return !by_file_names_ && by_name_.empty() && by_number_.empty(); }
  std::string of(const std::string& file) const;  // throws DataError when it is not known
  bool knows(const std::string& file) const { return find(file).has_value(); }

 private:
  void read_table(const ImageColumns& columns);
  void read_list();
  std::optional<std::string> find(const std::string& file) const;

  fs::path path_;
  bool by_file_names_ = false;
  std::map<std::string, std::string> by_name_;  // of a table also without the ending
  std::vector<std::string> by_number_;
};

}  // namespace lockstep
