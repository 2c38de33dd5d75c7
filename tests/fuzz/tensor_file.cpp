// A safetensors file: header, names, shapes, extents.
#include "formats/tensor_file.h"

#include "fuzz.h"

FUZZ(bytes) {
  const lockstep::TensorFile file(lockstep::as_file(bytes));
  for (const lockstep::TensorEntry& entry : file.entries()) {
    for (const std::byte byte : entry.data) lockstep::use(byte);
    lockstep::use(file.get(entry.name));
  }
}
