#include "formats/pixel_arrays.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "formats/npy_file.h"
#include "formats/pickle.h"
#include "formats/png_file.h"

namespace lockstep {

namespace {

constexpr int64_t kCifarSide = 32;
constexpr int64_t kCifarBytes = 3 * kCifarSide * kCifarSide;
constexpr int64_t kSmallestSide = 8;  // of a table's images
constexpr int64_t kLargestSide = 1024;

uint32_t big_endian(std::string_view bytes, std::size_t at) {
  uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return __builtin_bswap32(value);
}

// Returns an IDX file's sizes, checked against its length.
std::vector<int64_t> idx_sizes(std::string_view bytes, std::size_t dimensions,
                               const std::string& name) {
  const std::size_t head = 4 + 4 * dimensions;
  if (bytes.size() < head) throw DataError("{}: cut off within the head of an IDX file", name);
  const uint32_t magic = big_endian(bytes, 0);
  if (magic != 0x800 + dimensions) {
    throw DataError("{}: begins with 0x{:08x}, expected 0x{:08x}, an IDX file of bytes with {}",
                    name, magic, 0x800 + dimensions,
                    dimensions == 1 ? "one dimension" : "three dimensions");
  }
  std::vector<int64_t> out;
  unsigned __int128 total = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    out.push_back(big_endian(bytes, 4 + 4 * i));
    total *= static_cast<uint64_t>(out.back());
  }
  if (total != bytes.size() - head) {
    throw DataError("{}: has {} bytes of data, not the {} that its head says: cut off or damaged",
                    name, bytes.size() - head, fmt::join(out, " x "));
  }
  return out;
}

std::vector<uint8_t> copied(std::string_view bytes) { return {bytes.begin(), bytes.end()}; }

PixelArray cifar_images(std::size_t images) {
  return {.images = static_cast<int64_t>(images),
          .height = kCifarSide,
          .width = kCifarSide,
          .channels = 3,
          .planar = true};
}

Pickle read_dictionary(std::string_view bytes, const std::string& name) {
  return read_pickle(std::as_bytes(std::span(bytes)), name);
}

// Returns the first of the keys that the dictionary has; null when it has none of them.
const PickleValue* find_key(const Pickle& pickle, std::initializer_list<std::string_view> keys) {
  const auto* dictionary = std::get_if<PickleDict>(pickle.root);
  if (dictionary == nullptr) return nullptr;
  for (const std::string_view key : keys) {
    for (const auto& [name, value] : dictionary->items) {
      const auto* text = std::get_if<std::string>(name);
      if (text != nullptr && *text == key) return value;
    }
  }
  return nullptr;
}

const std::vector<PickleRef>& need_list(const Pickle& pickle,
                                        std::initializer_list<std::string_view> keys,
                                        const std::string& name) {
  const PickleValue* value = find_key(pickle, keys);
  const auto* list = value != nullptr ? std::get_if<PickleList>(value) : nullptr;
  if (list == nullptr) {
    throw DataError("{}: holds no list \"{}\", as CIFAR's files do", name, *keys.begin());
  }
  return list->items;
}

// Returns the side of a square of so many pixels; nothing when there is none.
std::optional<int64_t> side_of(int64_t pixels) {
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(pixels))));
  const bool square = side * side == pixels && side >= kSmallestSide && side <= kLargestSide;
  return square ? std::optional(side) : std::nullopt;
}

struct TableShape {
  int64_t side, channels;
  bool labelled;
};

std::optional<TableShape> shape_of(int64_t fields) {
  for (const bool labelled : {true, false}) {
    const int64_t pixels = fields - (labelled ? 1 : 0);
    if (const auto side = side_of(pixels)) return TableShape{*side, 1, labelled};
    if (pixels % 3 != 0) continue;
    if (const auto side = side_of(pixels / 3)) return TableShape{*side, 3, labelled};
  }
  return std::nullopt;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view take_field(std::string_view& line) {
  const std::size_t end = std::min(line.find(','), line.size());
  std::string_view field = trim(line.substr(0, end));
  line.remove_prefix(std::min(end + 1, line.size()));
  if (field.size() >= 2 && field.front() == '"' && field.back() == '"') {
    field = field.substr(1, field.size() - 2);
  }
  return field;
}

int64_t fields_of(std::string_view line) { return 1 + std::count(line.begin(), line.end(), ','); }

bool is_number(std::string_view field) {
  return !field.empty() && field.find_first_not_of("0123456789.") == std::string_view::npos;
}

// The first line of a table: its names, or already an image.
struct TableHead {
  bool names = false;
  std::optional<int64_t> label;  // column
};

// Throws DataError when there is no column `wanted`.
TableHead head_of(std::string_view line, const TableShape& shape, const std::string& wanted,
                  const std::string& name) {
  std::vector<std::string> fields;
  for (const int64_t count = fields_of(line); std::ssize(fields) < count;) {
    fields.emplace_back(take_field(line));
  }
  TableHead out{.names = !is_number(fields[1])};
  if (!shape.labelled) return out;
  const std::vector<std::string> known =
      wanted.empty() ? std::vector<std::string>{"label", "class"} : std::vector{wanted};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (const std::string& one : known) {
      if (equals_ignoring_case(fields[i], one)) return {true, static_cast<int64_t>(i)};
    }
  }
  if (!wanted.empty()) throw DataError("{}: no column \"{}\" (--label)", name, wanted);
  out.label = 0;
  return out;
}

uint8_t pixel_of(std::string_view field, int64_t line, int64_t column, const std::string& name) {
  double value = -1;
  const auto [end, problem] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (problem != std::errc() || end != field.data() + field.size() || value < 0 || value > 255 ||
      value != std::floor(value)) {
    throw DataError("{}:{}: column {}: \"{}\" is no pixel: expected a whole number from 0 to 255",
                    name, line, column + 1, field.substr(0, 40));
  }
  return static_cast<uint8_t>(value);
}

}  // namespace

std::string PixelArray::encode(int64_t image) const {
  const auto area = static_cast<std::size_t>(height * width);
  const uint8_t* from =
      pixels.data() + static_cast<std::size_t>(image) * area * static_cast<std::size_t>(channels);
  if (channels == 1) return encode_grey_png(from, width, height);
  RgbImage out(width, height);
  for (std::size_t i = 0; i < area; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      out.pixels[3 * i + c] = planar ? from[c * area + i] : from[3 * i + c];
    }
  }
  return encode_png(out);
}

PixelArray read_idx_images(std::string_view bytes, const std::string& name) {
  const std::vector<int64_t> sizes = idx_sizes(bytes, 3, name);
  return {.images = sizes[0],
          .height = sizes[1],
          .width = sizes[2],
          .channels = 1,
          .pixels = copied(bytes.substr(16))};
}

std::vector<std::string> read_idx_labels(std::string_view bytes, const std::string& name) {
  idx_sizes(bytes, 1, name);
  std::vector<std::string> out;
  for (const char label : bytes.substr(8)) {
    out.push_back(std::to_string(static_cast<uint8_t>(label)));
  }
  return out;
}

PixelArray read_cifar_records(std::string_view bytes, int64_t label_bytes,
                              const std::string& name) {
  const auto record = static_cast<std::size_t>(label_bytes + kCifarBytes);
  if (bytes.empty() || bytes.size() % record != 0) {
    throw DataError("{}: {} bytes, expected records of {}, a label and 32 x 32 pixels: cut off?",
                    name, bytes.size(), record);
  }
  PixelArray out = cifar_images(bytes.size() / record);
  for (std::size_t at = 0; at < bytes.size(); at += record) {
    const auto label = static_cast<std::size_t>(label_bytes) - 1;
    out.labels.push_back(std::to_string(static_cast<uint8_t>(bytes[at + label])));
    const std::string_view image = bytes.substr(at + label + 1, kCifarBytes);
    out.pixels.insert(out.pixels.end(), image.begin(), image.end());
  }
  return out;
}

PixelArray read_cifar_pickle(std::string_view bytes, const std::string& name) {
  const Pickle pickle = read_dictionary(bytes, name);
  const PickleValue* data = find_key(pickle, {"data"});
  const auto* array = data != nullptr ? std::get_if<PickleArray>(data) : nullptr;
  if (array == nullptr) throw DataError("{}: holds no array \"data\", as CIFAR's files do", name);
  const bool well = array->type == "u1" && array->shape.size() == 2 && array->shape[0] >= 0 &&
                    array->shape[1] == kCifarBytes && !array->columns_first &&
                    array->bytes.size() % kCifarBytes == 0 &&
                    static_cast<int64_t>(array->bytes.size() / kCifarBytes) == array->shape[0];
  if (!well) {
    throw DataError(
        "{}: \"data\" is {} of type {}, {} bytes; expected images x {} of u1, row by row", name,
        fmt::join(array->shape, " x "), array->type, array->bytes.size(), kCifarBytes);
  }
  PixelArray out = cifar_images(array->bytes.size() / kCifarBytes);
  out.pixels = copied(array->bytes);
  for (const PickleRef label : need_list(pickle, {"labels", "fine_labels"}, name)) {
    const auto* number = std::get_if<int64_t>(label);
    if (number == nullptr) throw DataError("{}: a label is no whole number", name);
    out.labels.push_back(std::to_string(*number));
  }
  if (std::ssize(out.labels) != out.images) {
    throw DataError("{}: {} labels of {} images", name, out.labels.size(), out.images);
  }
  return out;
}

std::vector<std::string> read_cifar_names(std::string_view bytes, const std::string& name) {
  std::vector<std::string> out;
  const Pickle pickle = read_dictionary(bytes, name);
  for (const PickleRef item : need_list(pickle, {"fine_label_names", "label_names"}, name)) {
    const auto* text = std::get_if<std::string>(item);
    if (text == nullptr) throw DataError("{}: the name of a class is no text", name);
    out.push_back(*text);
  }
  return out;
}

PixelArray read_npy_images(std::string_view bytes, const std::string& name) {
  const NpyFile file = read_npy(bytes, name);
  const std::vector<int64_t>& shape = file.shape;
  const int64_t channels = shape.size() == 4 ? shape[3] : 1;
  if (file.type != "|u1" || shape.size() < 3 || (channels != 1 && channels != 3)) {
    throw DataError("{}: {}; expected bytes (uint8), images x height x width, or x 3", name,
                    file.text());
  }
  return {.images = shape[0],
          .height = shape[1],
          .width = shape[2],
          .channels = channels,
          .pixels = copied(file.data)};
}

std::vector<std::string> read_npy_labels(std::string_view bytes, const std::string& name) {
  const NpyFile file = read_npy(bytes, name);
  const bool one_each = file.shape.size() == 1 || (file.shape.size() == 2 && file.shape[1] == 1);
  const char order = file.type[0], kind = file.type[1];
  const auto width = static_cast<std::size_t>(file.type[2] - '0');
  if (!one_each || width > 8 || (kind != 'u' && kind != 'i') || (order != '<' && order != '|')) {
    throw DataError("{}: {}; expected a whole number for each image", name, file.text());
  }
  std::vector<std::string> out;
  for (std::size_t at = 0; at < file.data.size(); at += width) {
    uint64_t value = 0;
    std::memcpy(&value, file.data.data() + at, width);
    if (kind == 'i' && (value >> (8 * width - 1) & 1) != 0) {
      throw DataError("{}: label {} is negative", name, out.size());
    }
    out.push_back(std::to_string(value));
  }
  return out;
}

bool is_pixel_table(std::string_view beginning) {
  return shape_of(fields_of(take_line(beginning))).has_value();
}

PixelArray read_pixel_table(std::string_view text, const std::string& label,
                            const std::string& name) {
  std::string_view rest = text;
  const std::string_view first = take_line(rest);
  const std::optional<TableShape> shape = shape_of(fields_of(first));
  if (!shape) throw DataError("{}: {} fields a line, expected pixels", name, fields_of(first));
  const TableHead head = head_of(first, *shape, label, name);
  PixelArray out{.height = shape->side, .width = shape->side, .channels = shape->channels};
  const int64_t fields = fields_of(first);
  if (!head.names) rest = text;
  for (int64_t number = head.names ? 2 : 1; !rest.empty(); ++number) {
    std::string_view line = take_line(rest);
    if (line.empty()) continue;
    if (fields_of(line) != fields) {
      throw DataError("{}:{}: {} fields, where the first line has {}", name, number,
                      fields_of(line), fields);
    }
    for (int64_t column = 0; column < fields; ++column) {
      const std::string_view field = take_field(line);
      if (column == head.label) {
        out.labels.emplace_back(field);
      } else {
        out.pixels.push_back(pixel_of(field, number, column, name));
      }
    }
    ++out.images;
  }
  return out;
}

}  // namespace lockstep
