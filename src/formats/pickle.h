// Pickles of tensors, read without running anything: a machine that knows the opcodes that
// torch.save writes for dictionaries of tensors, and of all functions and classes that a pickle can
// name only those that make up a tensor. Every other one is refused by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/file.h"
#include "formats/tensor_file.h"

namespace lockstep {

struct PickleValue;
using PickleRef = PickleValue*;  // owned by the Pickle, as all values are

struct PickleNone {};
struct PickleGlobal {  // of a module, by name; never called but for those the machine knows
  std::string name;    // "torch._utils._rebuild_tensor_v2"
};
struct PickleStorage {
  DType dtype;
  std::string key;  // the entry of the archive that holds its bytes
  int64_t elements;
};
struct PickleTensor {
  PickleStorage storage;
  int64_t offset;  // elements
  std::vector<int64_t> shape, stride;
};
struct PickleList {  // a tuple as well
  std::vector<PickleRef> items;
};
struct PickleDict {
  std::vector<std::pair<PickleRef, PickleRef>> items;
};
struct PickleMark {};
struct PickleValue : std::variant<PickleNone, bool, int64_t, double, std::string, PickleGlobal,
                                  PickleStorage, PickleTensor, PickleList, PickleDict, PickleMark> {
  using variant::variant;
};

// What a pickle makes. It owns its values side by side, whatever they hold of each other: values
// that nest a million deep, or hold themselves, are freed as all others are.
struct Pickle {
  std::deque<PickleValue> values;
  const PickleValue* root = nullptr;
};

// DataError, with `name` and the byte: an opcode, function or class that is not of tensors, more
// than 10 million values, or bytes that are no pickle. Who walks through the values bounds the
// depth.
Pickle read_pickle(std::span<const std::byte> bytes, const std::string& name);

}  // namespace lockstep
