#include "formats/tensor_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

using SortedJson = nlohmann::json;  // sorted: lookups in ordered_json are linear

static_assert(std::endian::native == std::endian::little, "data are mapped as they are");

constexpr std::size_t kLengthBytes = 8;  // of the header's length, which precedes the header
constexpr std::size_t kMaxHeader = 100'000'000;  // limit of the reference implementation
constexpr std::size_t kHeaderAlignment = 8;      // aligns the data
constexpr int kDeepest = 3;                      // {"name": {"shape": [ ...
constexpr std::string_view kMetadataKey = "__metadata__";

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<DTypeRow, 10> kDTypes{{{DType::kF64, "F64", 8},
                                            {DType::kI64, "I64", 8},
                                            {DType::kF32, "F32", 4},
                                            {DType::kI32, "I32", 4},
                                            {DType::kF16, "F16", 2},
                                            {DType::kBF16, "BF16", 2},
                                            {DType::kI16, "I16", 2},
                                            {DType::kI8, "I8", 1},
                                            {DType::kU8, "U8", 1},
                                            {DType::kBool, "BOOL", 1}}};

const DTypeRow& row(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

std::vector<std::string> all_dtype_names() {
  std::vector<std::string> out;
  for (const DTypeRow& known : kDTypes) out.emplace_back(known.name);
  return out;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Returns the bytes of a tensor of this shape, or nothing if a size is negative or the result needs
// more than 64 bits.
std::optional<std::size_t> bytes_of(DType dtype, const std::vector<int64_t>& shape) {
  std::size_t bytes = dtype_bytes(dtype);
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

// ---- writing ----

void check_entries(const std::vector<TensorEntry>& entries) {
  std::set<std::string_view> names;
  for (const TensorEntry& entry : entries) {
    if (entry.name == kMetadataKey || !names.insert(entry.name).second) {
      throw std::invalid_argument(fmt::format("tensor name \"{}\": reserved or twice", entry.name));
    }
    std::optional<std::size_t> expected = bytes_of(entry.dtype, entry.shape);
    if (expected == entry.data.size()) continue;
    throw std::invalid_argument(fmt::format("tensor {}: {} bytes do not fit {} {}", entry.name,
                                            entry.data.size(), dtype_name(entry.dtype),
                                            shape_text(entry.shape)));
  }
}

std::string header_of(const std::vector<const TensorEntry*>& ordered,
                      const TensorMetadata& metadata) {
  std::vector<std::string> parts;
  if (!metadata.empty()) {
    parts.push_back(fmt::format("\"{}\":{}", kMetadataKey, SortedJson(metadata).dump()));
  }
  std::size_t offset = 0;
  for (const TensorEntry* entry : ordered) {
    std::size_t end = offset + entry->data.size();
    parts.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                                SortedJson(entry->name).dump(), dtype_name(entry->dtype),
                                SortedJson(entry->shape).dump(), offset, end));
    offset = end;
  }
  std::string text = fmt::format("{{{}}}", fmt::join(parts, ","));
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return text;
}

}  // namespace

std::string_view dtype_name(DType dtype) { return row(dtype).name; }
std::size_t dtype_bytes(DType dtype) { return row(dtype).bytes; }

std::optional<DType> dtype_named(std::string_view name) {
  for (const DTypeRow& candidate : kDTypes) {
    if (candidate.name == name) return candidate.dtype;
  }
  return std::nullopt;
}

WrittenFile write_tensor_file(const fs::path& path, const std::vector<TensorEntry>& entries,
                              const TensorMetadata& metadata) {
  check_entries(entries);
  std::vector<const TensorEntry*> ordered;
  for (const TensorEntry& entry : entries) ordered.push_back(&entry);
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return dtype_bytes(a->dtype) > dtype_bytes(b->dtype);
  });
  std::string header = header_of(ordered, metadata);
  auto length = static_cast<uint64_t>(header.size());
  LargeFile file(path);
  file.write(&length, sizeof length);
  file.write(header.data(), header.size());
  for (const TensorEntry* entry : ordered) file.write(entry->data.data(), entry->data.size());
  WrittenFile written = file.finish();
  sync_folder(path.parent_path());
  return written;
}

// ---- reading ----

namespace {

// Rejects what nlohmann's parser accepts but a header must not contain: repeated names, of which
// the parser would keep the last, and nesting deeper than a header has. (The parser's own callbacks
// could check this too, but with them each value that ends causes a walk through all values before
// it.)
class HeaderCheck : public nlohmann::json_sax<SortedJson> {
 public:
  explicit HeaderCheck(const fs::path& path) : path_(path) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& name) override {
    if (depth_ == 1 && !names_.insert(name).second) {
      throw DataError("{}: tensor {} appears twice in the header", path_.string(), name);
    }
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const SortedJson::exception&) override {
    return false;  // SortedJson::parse() reports it
  }

 private:
  bool open() {
    if (++depth_ <= kDeepest) return true;
    throw DataError("{}: the header nests deeper than names, fields and lists", path_.string());
  }

  const fs::path& path_;
  int depth_ = 0;
  std::unordered_set<std::string> names_;
};

SortedJson parse_strictly(const fs::path& path, std::string_view text) {
  HeaderCheck check(path);
  SortedJson::sax_parse(text, &check);
  try {
    SortedJson header = SortedJson::parse(text);
    if (header.is_object()) return header;
  } catch (const SortedJson::exception& error) {
    throw DataError("{}: the header is no valid JSON: {}", path.string(), error.what());
  }
  throw DataError("{}: the header is no JSON object", path.string());
}

bool is_list_of_sizes(const SortedJson& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), [](const SortedJson& item) {
           return item.is_number_unsigned() && item.get<uint64_t>() <= INT64_MAX;
         });
}

TensorMetadata parse_metadata(const fs::path& path, const SortedJson& value) {
  TensorMetadata out;
  bool strings = value.is_object() && std::all_of(value.begin(), value.end(),
                                                  [](auto& word) { return word.is_string(); });
  if (!strings) throw DataError("{}: {}: expected strings only", path.string(), kMetadataKey);
  for (const auto& [key, word] : value.items()) out[key] = word.get<std::string>();
  return out;
}

// Parses one tensor of the header and checks it against `data`, all bytes after the header.
TensorEntry parse_entry(const fs::path& path, const std::string& name, const SortedJson& value,
                        std::span<const std::byte> data) {
  auto require = [&](bool right, const char* expected) {
    if (right) return;
    throw DataError("{}: tensor {}: expected {} in the header, found {}", path.string(), name,
                    expected, value.dump());
  };
  require(value.is_object() && value.contains("dtype") && value["dtype"].is_string(), "a dtype");
  require(value.contains("shape") && is_list_of_sizes(value["shape"]), "a shape");
  require(value.contains("data_offsets") && is_list_of_sizes(value["data_offsets"]) &&
              value["data_offsets"].size() == 2,
          "data_offsets [begin, end]");
  auto word = value["dtype"].get<std::string>();
  std::optional<DType> dtype = dtype_named(word);
  if (!dtype) {
    throw DataError("{}: tensor {}: dtype \"{}\" is unknown ({})", path.string(), name, word,
                    join(all_dtype_names(), ", "));
  }
  TensorEntry entry{name, *dtype, value["shape"].get<std::vector<int64_t>>(), {}};
  auto begin = value["data_offsets"][0].get<std::size_t>();
  auto end = value["data_offsets"][1].get<std::size_t>();
  if (begin > end || end > data.size()) {
    throw DataError("{}: tensor {}: its data are bytes {} to {}, the file has {} bytes of data",
                    path.string(), name, begin, end, data.size());
  }
  std::optional<std::size_t> expected = bytes_of(entry.dtype, entry.shape);
  if (expected != end - begin) {
    throw DataError("{}: tensor {}: {} {} takes {} bytes, the header gives it {}", path.string(),
                    name, word, shape_text(entry.shape),
                    expected ? std::to_string(*expected) : "more than 2^64", end - begin);
  }
  entry.data = data.subspan(begin, end - begin);
  return entry;
}

}  // namespace

TensorFile::TensorFile(const fs::path& path) : path_(path), file_(path) {
  std::span<const std::byte> bytes = file_.bytes();
  if (bytes.size() < kLengthBytes) {
    throw DataError("{}: has {} bytes, expected a tensor file (at least {})", path.string(),
                    bytes.size(), kLengthBytes);
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxHeader) {
    throw DataError("{}: the header claims {} bytes, at most {} are allowed; no tensor file?",
                    path.string(), length, kMaxHeader);
  }
  if (length > bytes.size() - kLengthBytes) {
    throw DataError("{}: the header claims {} bytes, the file has {} after its length",
                    path.string(), length, bytes.size() - kLengthBytes);
  }
  std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  std::span<const std::byte> data = bytes.subspan(kLengthBytes + length);
  parse_header(text, data);
  check_layout(data.size());
}

void TensorFile::parse_header(std::string_view text, std::span<const std::byte> data) {
  SortedJson header = parse_strictly(path_, text);
  for (const auto& [name, value] : header.items()) {
    if (name == kMetadataKey) {
      metadata_ = parse_metadata(path_, value);
    } else {
      entries_.push_back(parse_entry(path_, name, value, data));
    }
  }
  std::stable_sort(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  for (std::size_t i = 0; i < entries_.size(); ++i) index_[entries_[i].name] = i;
}

// Checks that the tensors follow each other without overlap or gap up to the end of the file.
void TensorFile::check_layout(std::size_t data_bytes) const {
  std::size_t reached = 0;
  const std::byte* start = file_.bytes().data() + file_.bytes().size() - data_bytes;
  for (const TensorEntry& entry : entries_) {
    auto begin = static_cast<std::size_t>(entry.data.data() - start);
    if (begin != reached) {
      throw DataError("{}: tensor {}: its data begin at byte {}, expected {}: {} the tensor before",
                      path_.string(), entry.name, begin, reached,
                      begin < reached ? "they overlap" : "a hole after");
    }
    reached = begin + entry.data.size();
  }
  if (reached == data_bytes) return;
  throw DataError("{}: the tensors take {} bytes of data, the file has {}", path_.string(), reached,
                  data_bytes);
}

const TensorEntry* TensorFile::find(std::string_view name) const {
  auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &entries_[found->second];
}

const TensorEntry& TensorFile::get(std::string_view name) const {
  if (const TensorEntry* entry = find(name)) return *entry;
  throw DataError("{}: no tensor \"{}\"{}", path_.string(), name, did_you_mean(name, names()));
}

std::vector<std::string> TensorFile::names() const {
  std::vector<std::string> out;
  for (const TensorEntry& entry : entries_) out.push_back(entry.name);
  return out;
}

}  // namespace lockstep
