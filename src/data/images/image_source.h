// The images that `lockstep prepare images` reads, in any of these forms:
//   DIR/train/CLASS/FILE.jpg               an ImageNet-style tree
//   DIR/train/CLASS.tar                    ILSVRC's train archive, unpacked once
//   DIR/train.tar.gz, DIR/val.zip          archives with [SPLIT/]CLASS/FILE
//   DIR/ILSVRC2012_img_train.tar           archives of classes in an archive
//   DIR/val/FILE.jpg, ILSVRC2012_img_val.tar   flat, with a label list
//                                          (flat test images without a label are skipped)
//   DIR/CLASS/FILE.jpg                     only class folders: all images are train
//   DIR/FILE.jpg, DIR/FOLDER/FILE.jpg      all are train, with a list of every image's label
//   DIR/train-00000-of-00002.parquet       a data set of Hugging Face
//                                          (data/images/parquet_images.h)
// or one such archive instead of DIR.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/images/image_names.h"

namespace lockstep {

struct SourceImage {
  std::string split, class_name, file;
  fs::path path;                 // the file to read, or
  std::vector<std::byte> bytes;  // its content, if it comes from an archive

  std::string name() const { return split + "/" + class_name + "/" + file; }
};

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
  // Both throw DataError with the line number. `columns` are those of a table; empty ones have
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

// A file of a split: Parquet, an archive, a picture in the folder of its class, or metadata.csv or
// .jsonl with the columns file_name and label, which says the classes of pictures below its folder.
struct ImageInput {
  std::string split;
  fs::path path;
};

class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual std::optional<SourceImage> next() = 0;  // one call at a time; throws DataError
  // Returns what was passed over until now, because its format is not read.
  virtual UnreadPictures unread() const { return {}; }
};

// Throws DataError when there is nothing that looks like images.
// `labels` must outlive the source.
std::unique_ptr<ImageSource> open_image_source(const fs::path& input, const FlatLabels& labels,
                                               const ImageColumns& columns = {});
std::unique_ptr<ImageSource> open_image_inputs(const std::vector<ImageInput>& inputs,
                                               const FlatLabels& labels,
                                               const ImageColumns& columns = {});

}  // namespace lockstep
