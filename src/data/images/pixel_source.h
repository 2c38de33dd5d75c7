// Finds images that are published as arrays of pixels (formats/pixel_arrays.h), in a folder or in
// an archive, whole or beside other files:
//   train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-...   MNIST and sets of its form
//   data_batch_1.bin, test_batch.bin, batches.meta.txt           CIFAR-10, binary
//   train.bin, test.bin, fine_label_names.txt                    CIFAR-100, binary
//   data_batch_1, test_batch, batches.meta                       CIFAR-10, for Python
//   train, test, meta                                            CIFAR-100, for Python
//   x_train.npy, y_test.npy, train_images.npy, val_labels.npy    NumPy's, as in mnist.npz, MedMNIST
//   train.csv, mnist_test.csv                                    tables, a column for each pixel
// Each may be compressed (.gz).
#pragma once

#include <memory>
#include <string>

#include "base/file.h"
#include "data/images/image_source.h"

namespace lockstep {

// `input` is a folder, a table, an archive or a .npz. The files may be in a folder below it, two
// levels at most. Their images are read at once and encoded as PNG when they are asked for. Classes
// have the names that the set gives, else their numbers. `label` names the column of a table's
// labels, or is empty. Returns null when there are none. Throws DataError for files that are
// damaged or lack a part, for more than one set, and for one file of a set of several.
std::unique_ptr<ImageSource> open_pixel_source(const fs::path& input, const std::string& label);

}  // namespace lockstep
