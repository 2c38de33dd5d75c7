// Reads the classes of images that have no folders of their classes.
#pragma once

#include <map>
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
  bool empty() const { return by_name_.empty() && by_number_.empty(); }
  const std::string& of(const std::string& file) const;  // throws DataError when not listed
  bool knows(const std::string& file) const { return find(file) != nullptr; }

 private:
  void read_table(const ImageColumns& columns);
  void read_list();
  const std::string* find(const std::string& file) const;  // null: not listed

  fs::path path_;
  std::map<std::string, std::string> by_name_;  // of a table also without the ending
  std::vector<std::string> by_number_;
};

}  // namespace lockstep
