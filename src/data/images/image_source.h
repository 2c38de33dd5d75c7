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
//   DIR/train-images-idx3-ubyte.gz, ...    arrays of pixels (data/images/pixel_source.h)
// or one such archive instead of DIR.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/images/flat_labels.h"
#include "data/images/image_names.h"
#include "formats/pixel_arrays.h"

namespace lockstep {

struct SourceImage {
  std::string split, class_name, file;
  fs::path path;                 // the file to read, or
  std::vector<std::byte> bytes;  // its content, if it comes from an archive, or
  std::shared_ptr<const PixelArray> array = nullptr;  // the pixels, of the image `number`
  int64_t number = 0;

  // Returns the file: its content, read or encoded. Throws DataError when it cannot be read.
  std::vector<std::byte> take_content() &&;
  std::string name() const { return split + "/" + class_name + "/" + file; }
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
