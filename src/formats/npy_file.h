// Reads files of NumPy with one array (.npy; numpy.lib.format, versions 1 to 3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct NpyFile {
  std::string type;            // order, kind and bytes of an element: "|u1", "<i8"
  std::vector<int64_t> shape;  // four dimensions at most
  std::string_view data;  // of the bytes that were read, in the order of C, of the shape's size

  std::string text() const;  // "60000 x 28 x 28 of |u1"
};

// Throws DataError with `name` for bytes of another form or size, for Fortran's order, and for
// elements of more than nine bytes, as objects are.
NpyFile read_npy(std::string_view bytes, const std::string& name);

}  // namespace lockstep
