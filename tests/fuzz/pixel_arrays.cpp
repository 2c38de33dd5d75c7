// Images as arrays of pixels: IDX files, CIFAR's batches, NumPy's files, tables; and one of them as
// a PNG.
#include "formats/pixel_arrays.h"

#include "fuzz.h"

static int64_t encoded(const lockstep::PixelArray& array) {
  if (array.images == 0 || array.height * array.width == 0) return 0;
  return array.height * array.width < 4096 ? std::ssize(array.encode(array.images - 1)) : 0;
}

FUZZ(bytes) {
  lockstep::try_one([&] { return encoded(lockstep::read_idx_images(bytes, "fuzz")); });
  lockstep::try_one([&] { return lockstep::read_idx_labels(bytes, "fuzz").size(); });
  lockstep::try_one([&] { return encoded(lockstep::read_cifar_records(bytes, 1, "fuzz")); });
  lockstep::try_one([&] { return encoded(lockstep::read_cifar_records(bytes, 2, "fuzz")); });
  lockstep::try_one([&] { return encoded(lockstep::read_cifar_pickle(bytes, "fuzz")); });
  lockstep::try_one([&] { return lockstep::read_cifar_names(bytes, "fuzz").size(); });
  lockstep::try_one([&] { return encoded(lockstep::read_npy_images(bytes, "fuzz")); });
  lockstep::try_one([&] { return lockstep::read_npy_labels(bytes, "fuzz").size(); });
  if (!lockstep::is_pixel_table(bytes)) return;
  lockstep::try_one([&] { return encoded(lockstep::read_pixel_table(bytes, "", "fuzz")); });
}
