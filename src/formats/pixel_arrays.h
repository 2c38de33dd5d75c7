// Reads images that are arrays of pixels, as well-known sets are published: MNIST's IDX files
// (http://yann.lecun.com/exdb/mnist), CIFAR-10's and CIFAR-100's batches, binary or pickled
// (https://www.cs.toronto.edu/~kriz/cifar.html), NumPy's files (numpy.lib.format, version 1 to 3),
// and tables with a column for each pixel. All functions throw DataError with `name` for bytes of
// another size or form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct PixelArray {
  int64_t images = 0, height = 0, width = 0, channels = 0;  // 1 or 3
  bool planar = false;  // [images, channels, height, width]; else [images, height, width, channels]
  std::vector<uint8_t> pixels;
  std::vector<std::string> labels;  // of each image; none: the file has none

  // Returns the image as a PNG file, grey or in colour.
  std::string encode(int64_t image) const;
};

// An IDX file of three dimensions: [images, height, width].
PixelArray read_idx_images(std::string_view bytes, const std::string& name);
// An IDX file of one dimension.
std::vector<std::string> read_idx_labels(std::string_view bytes, const std::string& name);

// Records of labels and 3 x 32 x 32 pixels. `label_bytes` is 1 for CIFAR-10, 2 for CIFAR-100, of
// which the second, the fine label, is taken.
PixelArray read_cifar_records(std::string_view bytes, int64_t label_bytes, const std::string& name);
// A dictionary with "data", [images, 3072] bytes, and "labels" or "fine_labels".
PixelArray read_cifar_pickle(std::string_view bytes, const std::string& name);
// The classes' names in a dictionary with "label_names" or "fine_label_names".
std::vector<std::string> read_cifar_names(std::string_view bytes, const std::string& name);

// A .npy file of bytes: [images, height, width], or with a last dimension of 1 or 3 channels.
PixelArray read_npy_images(std::string_view bytes, const std::string& name);
// A .npy file of whole numbers, not negative: [images], or [images, 1].
std::vector<std::string> read_npy_labels(std::string_view bytes, const std::string& name);

// Returns whether the first line of a table, with commas, may be of an image and its label: one
// field for each pixel of a square, grey or of three colours in turn, and perhaps one field more.
bool is_pixel_table(std::string_view beginning);
// The label is in the column `label`, else in the one called label or class, else in the first. A
// table without that field has no labels. Values are whole numbers from 0 to 255.
PixelArray read_pixel_table(std::string_view text, const std::string& label,
                            const std::string& name);

}  // namespace lockstep
