// Reads pickles of tensors and of NumPy's arrays without executing them. The reader knows only the
// opcodes that torch.save writes for dictionaries of tensors and that Python 2 and 3 write for
// those of arrays, and of all functions and classes that a pickle can name only those that make up
// a tensor or an array. Anything else is refused with its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"
#include "formats/tensor_file.h"

namespace lockstep {

struct PickleValue;
using PickleRef = PickleValue*;  // owned by the Pickle, like all values

struct PickleNone {};
struct PickleGlobal {  // of a module; never called unless it is a known one
  std::string name;    // "torch._utils._rebuild_tensor_v2"
};
struct PickleStorage {
  DType dtype;
  std::string key;  // the entry of the archive that holds its bytes
  int64_t elements;
};
struct PickleTensor {
  PickleStorage storage;
  int64_t offset;  // in elements
  std::vector<int64_t> shape, stride;
};
struct PickleArrayType {  // NumPy's dtype
  std::string name;       // "u1", "f4", ...
};
struct PickleArray {  // NumPy's ndarray
  std::string type;   // "u1": bytes
  std::vector<int64_t> shape;
  bool columns_first = false;  // the order of the elements is Fortran's
  std::string_view bytes;      // in the Pickle; their number is not checked
};
struct PickleList {  // a list or a tuple
  std::vector<PickleRef> items;
};
struct PickleDict {
  std::vector<std::pair<PickleRef, PickleRef>> items;
};
struct PickleMark {};
struct PickleValue
    : std::variant<PickleNone, bool, int64_t, double, std::string, PickleGlobal, PickleStorage,
                   PickleTensor, PickleArrayType, PickleArray, PickleList, PickleDict, PickleMark> {
  using variant::variant;
};

// The result of a pickle. It owns its values in one flat container, however they refer to each
// other: so values that are nested a million deep, or contain themselves, are freed like all
// others.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
};

// Throws DataError with `name` and the byte offset for an opcode, function or class that does not
// belong to tensors and arrays, for more than 10 million values, and for bytes that are not a
// pickle. A caller that walks through the values must bound the depth itself.
Pickle read_pickle(std::span<const std::byte> bytes, const std::string& name);

}  // namespace lockstep
