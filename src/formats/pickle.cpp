#include "formats/pickle.h"

#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace lockstep {

namespace {

struct StorageType {
  std::string_view name;
  DType dtype;
};
constexpr std::array<StorageType, 10> kStorages = {{
    {"torch.FloatStorage", DType::kF32},
    {"torch.HalfStorage", DType::kF16},
    {"torch.BFloat16Storage", DType::kBF16},
    {"torch.DoubleStorage", DType::kF64},
    {"torch.LongStorage", DType::kI64},
    {"torch.IntStorage", DType::kI32},
    {"torch.ShortStorage", DType::kI16},
    {"torch.CharStorage", DType::kI8},
    {"torch.ByteStorage", DType::kU8},
    {"torch.BoolStorage", DType::kBool},
}};
constexpr std::size_t kMostValues = 10'000'000;  // a checkpoint has some ten per tensor
constexpr std::string_view kOrderedDict = "collections.OrderedDict";
constexpr std::string_view kTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kTagged = "torch.jit._pickle.restore_type_tag";  // by libtorch (C++)
constexpr std::string_view kParameter = "torch._utils._rebuild_parameter";
constexpr std::string_view kArrayClass = "numpy.ndarray";
constexpr std::string_view kArrayType = "numpy.dtype";

// NumPy moved it in 2.0.
bool is_array_maker(std::string_view name) {
  return name == "numpy.core.multiarray._reconstruct" ||
         name == "numpy._core.multiarray._reconstruct";
}

std::optional<DType> storage_type(std::string_view name) {
  for (const StorageType& s : kStorages) {
    if (s.name == name) return s.dtype;
  }
  return std::nullopt;
}

bool is_known(std::string_view name) {
  return name == kOrderedDict || name == kTensor || name == kParameter || name == kTagged ||
         name == kArrayClass || name == kArrayType || is_array_maker(name) || storage_type(name);
}

// Executes the opcodes, which are named as in Python's pickletools.
class Machine {
 public:
  Machine(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Pickle run() && {
    while (true) {
      start_ = next_;
      const auto opcode = take<uint8_t>();
      if (opcode == '.') {
        out_.root = pop();
        return std::move(out_);
      }
      if (!load(opcode) && !build(opcode) && !remember(opcode)) {
        refuse(fmt::format("the opcode 0x{:02x} is not of a pickle of tensors or arrays", opcode));
      }
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw DataError("{}: byte {}: {}", name_, start_, why);
  }

  std::span<const std::byte> take_bytes(uint64_t count) {
    if (count > bytes_.size() - next_) refuse("the pickle ends within a value");
    const auto out = bytes_.subspan(next_, count);
    next_ += count;
    return out;
  }
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take_bytes(sizeof(T)).data(), sizeof(T));
    return value;
  }
  std::string take_text(uint64_t count) {
    const auto part = take_bytes(count);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  std::string take_line() {
    std::string out;
    for (char c; (c = take<char>()) != '\n';) out += c;
    return out;
  }

  template <class T>
  bool push(T value) {
    if (out_.values.size() == kMostValues) refuse("more values than tensors need");
    stack_.push_back(&out_.values.emplace_back(std::move(value)));
    return true;
  }
  PickleRef pop() {
    if (stack_.empty()) refuse("a value is missing");
    const PickleRef out = stack_.back();
    stack_.pop_back();
    return out;
  }
  std::vector<PickleRef> pop_to_mark() {
    std::size_t at = stack_.size();
    while (at > 0 && !std::holds_alternative<PickleMark>(*stack_[at - 1])) --at;
    if (at == 0) refuse("a mark is missing");
    std::vector<PickleRef> out(stack_.begin() + static_cast<std::ptrdiff_t>(at), stack_.end());
    stack_.resize(at - 1);
    return out;
  }
  template <class T>
  T& as(PickleRef value, const char* what) const {
    if (T* found = std::get_if<T>(value)) return *found;
    refuse(fmt::format("expected {}", what));
  }

  // Handles opcodes whose values are in the pickle itself.
  bool load(uint8_t opcode) {
    switch (opcode) {
      case 'N':
        return push(PickleNone{});
      case 0x88:
        return push(true);
      case 0x89:
        return push(false);
      case 'K':
        return push(static_cast<int64_t>(take<uint8_t>()));
      case 'M':
        return push(static_cast<int64_t>(take<uint16_t>()));
      case 'J':
        return push(static_cast<int64_t>(take<int32_t>()));
      case 0x8a:
        return push(long_integer(take<uint8_t>()));
      case 'G':
        return push(std::bit_cast<double>(__builtin_bswap64(take<uint64_t>())));
      case 'X':
      case 'T':  // bytes of Python 2
      case 'B':
        return push(take_text(take<uint32_t>()));
      case 0x8c:
      case 'U':
      case 'C':
        return push(take_text(take<uint8_t>()));
      case 0x8e:
        return push(take_text(take<uint64_t>()));
      case ')':
      case ']':
        return push(PickleList{});
      case '}':
        return push(PickleDict{});
      case '(':
        return push(PickleMark{});
      case 'c': {
        const std::string module = take_line();
        return push_global(module + "." + take_line());
      }
      case 0x93: {
        const std::string name = as<std::string>(pop(), "a name");
        return push_global(as<std::string>(pop(), "a module") + "." + name);
      }
      default:
        return false;
    }
  }

  int64_t long_integer(uint8_t count) {
    if (count > 8) refuse("an integer of more than 64 bits");
    uint64_t value = 0;
    const auto part = take_bytes(count);
    std::memcpy(&value, part.data(), count);
    if (count > 0 && count < 8 && (value >> (8 * count - 1) & 1) != 0) value |= ~0ull << 8 * count;
    return static_cast<int64_t>(value);
  }

  bool push_global(const std::string& name) {
    if (!is_known(name)) {
      DataError error("{}: byte {}: names {}, which is no part of a tensor or an array", name_,
                      start_, name);
      error.set_cause("a pickle can run code when it is read; nothing was run");
      error.set_advice("of a model, its safetensors file");
      throw error;
    }
    return push(PickleGlobal{name});
  }

  // Handles opcodes that make values of other values.
  bool build(uint8_t opcode) {
    switch (opcode) {
      case 't':
        return push(PickleList{pop_to_mark()});
      case 0x85:
      case 0x86:
      case 0x87: {
        std::vector<PickleRef> items(opcode - 0x84u);
        for (std::size_t i = items.size(); i-- > 0;) items[i] = pop();
        return push(PickleList{std::move(items)});
      }
      case 'l':
        return push(PickleList{pop_to_mark()});
      case 'a': {
        const PickleRef item = pop();
        as<PickleList>(top(), "a list").items.push_back(item);
        return true;
      }
      case 'e': {
        std::vector<PickleRef> items = pop_to_mark();
        auto& list = as<PickleList>(top(), "a list").items;
        list.insert(list.end(), items.begin(), items.end());
        return true;
      }
      case 's': {
        const PickleRef value = pop(), key = pop();
        as<PickleDict>(top(), "a dictionary").items.emplace_back(key, value);
        return true;
      }
      case 'u': {
        std::vector<PickleRef> items = pop_to_mark();
        if (items.size() % 2 != 0) refuse("a key without a value");
        auto& dict = as<PickleDict>(top(), "a dictionary").items;
        for (std::size_t i = 0; i < items.size(); i += 2) dict.emplace_back(items[i], items[i + 1]);
        return true;
      }
      case 'R':
        return reduce();
      case 'b':
        return set_state();
      case 'Q':
        return persistent();
      default:
        return false;
    }
  }

  // Returns what the known functions would return.
  bool reduce() {
    const PickleRef arguments = pop(), function = pop();
    const auto& items = as<PickleList>(arguments, "arguments").items;
    const std::string& name = as<PickleGlobal>(function, "a function").name;
    if (name == kOrderedDict && items.empty()) return push(PickleDict{});
    if (is_array_maker(name)) return push(PickleArray{});
    if (name == kArrayType && !items.empty()) {
      return push(PickleArrayType{as<std::string>(items[0], "the name of a type")});
    }
    if (name == kTagged && items.size() == 2) {
      stack_.push_back(items[0]);
      return true;
    }
    if (name == kParameter && !items.empty()) {
      stack_.push_back(items[0]);
      as<PickleTensor>(items[0], "a tensor");
      return true;
    }
    if (name == kTensor && items.size() >= 4) {
      PickleTensor tensor{as<PickleStorage>(items[0], "a storage"),
                          as<int64_t>(items[1], "an offset"), integers(items[2]),
                          integers(items[3])};
      if (tensor.shape.size() != tensor.stride.size()) refuse("a tensor's shape has no stride");
      return push(std::move(tensor));
    }
    refuse(name + " is called in another way than for tensors");
  }

  // Gives an array its elements. The attributes of an OrderedDict, e.g. _metadata, and the order of
  // a type's bytes are not needed.
  bool set_state() {
    const PickleRef state = pop();
    if (std::holds_alternative<PickleDict>(*top())) return true;
    if (std::holds_alternative<PickleArrayType>(*top())) return true;
    auto& array = as<PickleArray>(top(), "attributes of a dictionary or an array alone");
    // (version, shape, type, Fortran's order, bytes)
    const auto& items = as<PickleList>(state, "an array's state").items;
    if (items.size() != 5) refuse("an array of objects, or of another NumPy");
    array = {.type = as<PickleArrayType>(items[2], "an array's type").name,
             .shape = integers(items[1]),
             .columns_first = as<bool>(items[3], "an array's order"),
             .bytes = as<std::string>(items[4], "an array's bytes")};
    return true;
  }

  std::vector<int64_t> integers(PickleRef tuple) const {
    std::vector<int64_t> out;
    for (const PickleRef item : as<PickleList>(tuple, "a tuple").items) {
      out.push_back(as<int64_t>(item, "an integer"));
    }
    return out;
  }

  // A persistent id is the tuple ("storage", type, key, device, elements).
  bool persistent() {
    const PickleRef id = pop();
    const auto& items = as<PickleList>(id, "a storage's description").items;
    if (items.size() < 5 || as<std::string>(items[0], "a word") != "storage") {
      refuse("a reference to something other than a storage");
    }
    const std::string& type = as<PickleGlobal>(items[1], "a storage's type").name;
    const std::optional<DType> dtype = storage_type(type);
    if (!dtype) refuse(type + " is no storage");
    return push(PickleStorage{*dtype, as<std::string>(items[2], "a storage's key"),
                              as<int64_t>(items[4], "a storage's length")});
  }

  bool remember(uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // protocol
        take<uint8_t>();
        return true;
      case 0x95:  // frame
        take<uint64_t>();
        return true;
      case 'q':
        memo_[take<uint8_t>()] = top();
        return true;
      case 'r':
        memo_[take<uint32_t>()] = top();
        return true;
      case 0x94:
        memo_[static_cast<uint32_t>(memo_.size())] = top();
        return true;
      case 'h':
        return recall(take<uint8_t>());
      case 'j':
        return recall(take<uint32_t>());
      default:
        return false;
    }
  }
  bool recall(uint32_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) refuse("a value that was never kept");
    stack_.push_back(found->second);
    return true;
  }
  PickleRef top() const {
    if (stack_.empty()) refuse("a value is missing");
    return stack_.back();
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  std::size_t next_ = 0, start_ = 0;
  Pickle out_;
  std::vector<PickleRef> stack_;
  std::map<uint32_t, PickleRef> memo_;
};

}  // namespace

Pickle read_pickle(std::span<const std::byte> bytes, const std::string& name) {
  return Machine(bytes, name).run();
}

}  // namespace lockstep
