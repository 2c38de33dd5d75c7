#include "train/checkpoint/checkpoint_inspection.h"

#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/tensor_file.h"
#include "train/checkpoint/checkpoint.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double from_half(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  double magnitude = 0;
  if (exponent == 31) {
    magnitude = fraction == 0 ? kInfinity : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <class T>
double read_number(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

double read_half(const std::byte* from) {
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return from_half(bits);
}

double read_bfloat16(const std::byte* from) {
  uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof bits);
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

using ReadNumber = double (*)(const std::byte*);

ReadNumber reader_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return read_number<double>;
    case DType::kI64:
      return read_number<int64_t>;
    case DType::kF32:
      return read_number<float>;
    case DType::kI32:
      return read_number<int32_t>;
    case DType::kF16:
      return read_half;
    case DType::kBF16:
      return read_bfloat16;
    case DType::kI16:
      return read_number<int16_t>;
    case DType::kI8:
      return read_number<int8_t>;
    case DType::kU8:
    case DType::kBool:
      return read_number<uint8_t>;
  }
  throw std::logic_error("a type of numbers without a reader");
}

// Calls `visit` with the address of every number.
void for_each_number(const TensorEntry& tensor, const std::function<void(std::size_t)>& visit) {
  const std::size_t each = dtype_bytes(tensor.dtype);
  for (std::size_t at = 0; at + each <= tensor.data.size(); at += each) visit(at);
}

TensorFigures figures_of(const TensorEntry& tensor) {
  const ReadNumber read = reader_of(tensor.dtype);
  TensorFigures out{.least = kInfinity, .largest = -kInfinity};
  double squares = 0;
  for_each_number(tensor, [&](std::size_t at) {
    const double value = read(tensor.data.data() + at);
    ++out.numbers;
    if (!std::isfinite(value)) {
      ++out.not_finite;
      return;
    }
    out.least = std::min(out.least, value);
    out.largest = std::max(out.largest, value);
    squares += value * value;
  });
  const int64_t finite = out.numbers - out.not_finite;
  if (finite == 0) return {.numbers = out.numbers, .not_finite = out.not_finite};
  out.rms = std::sqrt(squares / static_cast<double>(finite));
  return out;
}

std::string kind_text(const TensorEntry& tensor) {
  return fmt::format("{} [{}]", dtype_name(tensor.dtype), fmt::join(tensor.shape, ", "));
}

std::optional<TensorDifference> difference(const TensorEntry& a, const TensorEntry& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) {
    return TensorDifference{.name = a.name,
                            .why = fmt::format("{}, there {}", kind_text(a), kind_text(b))};
  }
  if (std::ranges::equal(a.data, b.data)) return std::nullopt;
  const ReadNumber read = reader_of(a.dtype);
  const std::size_t each = dtype_bytes(a.dtype);
  TensorDifference out{.name = a.name};
  double squares = 0, own = 0;
  for_each_number(a, [&](std::size_t at) {
    const std::byte *left = a.data.data() + at, *right = b.data.data() + at;
    ++out.numbers;
    const double x = read(left), y = read(right);
    if (std::isfinite(x)) own += x * x;
    if (std::memcmp(left, right, each) == 0) return;
    ++out.differing;
    const double away = std::isfinite(x) && std::isfinite(y) ? std::abs(x - y) : kInfinity;
    out.largest = std::max(out.largest, away);
    squares += away * away;
  });
  out.rms = std::sqrt(squares / static_cast<double>(out.numbers));
  if (own > 0) out.relative = std::sqrt(squares / own);
  return out;
}

int64_t bytes_in(const fs::path& folder) {
  int64_t out = 0;
  std::error_code gone;  // another process may remove it meanwhile
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, gone)) {
    const auto bytes = entry.file_size(gone);
    if (!gone) out += static_cast<int64_t>(bytes);
  }
  return out;
}

double seconds_of_change(const fs::path& file) {
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0) return 0;
  return static_cast<double>(facts.st_mtim.tv_sec);
}

Json read_state_json(const fs::path& checkpoint) {
  const fs::path file = state_file(checkpoint);
  try {
    return Json::parse(read_file(file));
  } catch (const Json::exception& error) {
    throw DataError("{}: not valid JSON: {}", file.string(), error.what());
  }
}

std::optional<RunPosition> position_of(const fs::path& checkpoint) {
  try {
    return position_from_json(read_state_json(checkpoint));
  } catch (const Json::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

ListedCheckpoint list_checkpoint(const fs::path& checkpoint, CheckpointCheck check) {
  const bool unfinished = checkpoint.extension() == kUnfinished;
  return {
      .path = checkpoint,
      .step = checkpoint_step(unfinished ? fs::path(checkpoint).replace_extension() : checkpoint),
      .bytes = bytes_in(checkpoint),
      .written = seconds_of_change(checkpoint / "DONE"),
      .damage = unfinished ? "it was not finished" : checkpoint_damage(checkpoint, check),
      .position = position_of(checkpoint)};
}

std::vector<ListedCheckpoint> list_checkpoints(const fs::path& folder, CheckpointCheck check) {
  std::vector<ListedCheckpoint> out;
  std::vector<fs::path> paths = all_checkpoints(folder);
  std::ranges::copy(unfinished_checkpoints(folder), std::back_inserter(paths));
  for (const fs::path& path : paths) {
    ListedCheckpoint found = list_checkpoint(path, check);
    if (found.damage.empty() || fs::exists(path)) out.push_back(std::move(found));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.step > b.step; });
  return out;
}

std::vector<InspectedTensor> inspect_tensors(const fs::path& file) {
  const TensorFile tensors(file);
  std::vector<InspectedTensor> out;
  for (const TensorEntry& tensor : tensors.entries()) {
    out.push_back({.name = tensor.name,
                   .dtype = std::string(dtype_name(tensor.dtype)),
                   .shape = tensor.shape,
                   .figures = figures_of(tensor)});
  }
  return out;
}

std::vector<TensorDifference> differing_tensors(const fs::path& first, const fs::path& second) {
  const TensorFile a(first), b(second);
  std::vector<TensorDifference> out;
  for (const TensorEntry& tensor : a.entries()) {
    const TensorEntry* other = b.find(tensor.name);
    if (other == nullptr) {
      out.push_back({.name = tensor.name, .why = "absent in the second"});
    } else if (std::optional<TensorDifference> found = difference(tensor, *other)) {
      out.push_back(std::move(*found));
    }
  }
  for (const TensorEntry& tensor : b.entries()) {
    if (a.find(tensor.name) == nullptr) {
      out.push_back({.name = tensor.name, .why = "absent in the first"});
    }
  }
  return out;
}

std::vector<StateDifference> differing_states(const fs::path& first, const fs::path& second) {
  const Json a = read_state_json(first), b = read_state_json(second);
  const auto text = [](const Json& of, const std::string& key) {
    return of.contains(key) ? of.at(key).dump() : "nothing";
  };
  std::vector<StateDifference> out;
  const auto compare = [&](const std::string& key) {
    const std::string left = text(a, key), right = text(b, key);
    if (left != right) out.push_back({key, left, right});
  };
  for (const auto& [key, value] : a.items()) compare(key);
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key)) compare(key);
  }
  return out;
}

}  // namespace lockstep
