#include "formats/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/log.h"
#include "formats/crc32c.h"

namespace lockstep {

namespace {

static_assert(std::endian::native == std::endian::little,
              "fixed-width fields are copied as they are");

constexpr std::size_t kFlushBytes = 64 * 1024;
constexpr std::string_view kVersion = "brain.Event:2";
constexpr int kStringType = 7;  // DT_STRING of tensorflow/core/framework/types.proto

// Field numbers of event.proto, summary.proto and tensor.proto.
namespace field {
constexpr int kEventWallTime = 1, kEventStep = 2, kEventVersion = 3, kEventSummary = 5;
constexpr int kSummaryValue = 1;
constexpr int kValueTag = 1, kValueSimple = 2, kValueTensor = 8, kValueMetadata = 9;
constexpr int kMetadataPlugin = 1, kPluginName = 1;
constexpr int kTensorType = 1, kTensorShape = 2, kTensorStrings = 8;
constexpr int kShapeDimension = 2, kDimensionSize = 1;
}  // namespace field

// Wire types of the protocol-buffer encoding.
enum Wire : int { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// ---- writing ----

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

template <typename Value>
void put_raw(std::string& out, Value value) {
  char bytes[sizeof(Value)];
  std::memcpy(bytes, &value, sizeof(Value));
  out.append(bytes, sizeof(Value));
}

void put_key(std::string& out, int number, Wire wire) {
  put_varint(out, static_cast<uint64_t>(number) << 3 | wire);
}

void put_integer(std::string& out, int number, int64_t value) {
  put_key(out, number, kVarint);
  put_varint(out, static_cast<uint64_t>(value));
}

void put_bytes(std::string& out, int number, std::string_view bytes) {
  put_key(out, number, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_header(double wall_time, int64_t step) {
  std::string out;
  put_key(out, field::kEventWallTime, kFixed64);
  put_raw(out, wall_time);
  if (step != 0) put_integer(out, field::kEventStep, step);  // proto3 leaves zeros out
  return out;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  return name.data();
}

// Opens a file that did not exist before: two writers in one second get two names.
int create_new(const fs::path& folder, fs::path& path) {
  auto seconds = static_cast<int64_t>(seconds_since_epoch());
  while (true) {
    path = folder / fmt::format("events.out.tfevents.{}.{}.{}.v2", seconds, host_name(), getpid());
    int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (fd >= 0) return fd;
    if (errno != EEXIST) {
      throw MachineError("{}: cannot be created: {}", path.string(), std::strerror(errno));
    }
    ++seconds;
  }
}

}  // namespace

double seconds_since_epoch() {
  using std::chrono::system_clock;
  return std::chrono::duration<double>(system_clock::now().time_since_epoch()).count();
}

EventWriter::EventWriter(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw MachineError("{}: cannot be created: {}", folder.string(), error.message());
  descriptor_ = create_new(folder, path_);
  std::string first = event_header(seconds_since_epoch(), 0);
  put_bytes(first, field::kEventVersion, kVersion);
  record(first);
  try {
    flush();
  } catch (...) {
    ::close(descriptor_);  // no destructor runs for an object that was not made
    throw;
  }
}

EventWriter::~EventWriter() {
  try {
    flush();
  } catch (const Error& error) {
    log_warning("{}", error.what());
  }
  ::close(descriptor_);
}

void EventWriter::scalar(std::string_view tag, int64_t step, double value, double wall_time) {
  std::string fields;
  put_key(fields, field::kValueSimple, kFixed32);
  put_raw(fields, static_cast<float>(value));
  summary(tag, {step, wall_time}, fields);
}

void EventWriter::text(std::string_view tag, int64_t step, std::string_view markdown,
                       double wall_time) {
  // The text plugin wants a tensor of strings, here of shape [1], and its name in the metadata.
  std::string dimension, shape, tensor, plugin, metadata, fields;
  put_integer(dimension, field::kDimensionSize, 1);
  put_bytes(shape, field::kShapeDimension, dimension);
  put_integer(tensor, field::kTensorType, kStringType);
  put_bytes(tensor, field::kTensorShape, shape);
  put_bytes(tensor, field::kTensorStrings, markdown);
  put_bytes(plugin, field::kPluginName, "text");
  put_bytes(metadata, field::kMetadataPlugin, plugin);
  put_bytes(fields, field::kValueTensor, tensor);
  put_bytes(fields, field::kValueMetadata, metadata);
  summary(tag, {step, wall_time}, fields);
}

void EventWriter::summary(std::string_view tag, Moment moment, std::string_view value) {
  std::string tagged, list;
  put_bytes(tagged, field::kValueTag, tag);
  tagged += value;
  put_bytes(list, field::kSummaryValue, tagged);
  std::string event = event_header(moment.wall_time, moment.step);
  put_bytes(event, field::kEventSummary, list);
  record(event);
}

void EventWriter::record(std::string_view message) {
  std::string length;
  put_raw(length, static_cast<uint64_t>(message.size()));
  pending_ += length;
  put_raw(pending_, masked_crc32c(length));
  pending_ += message;
  put_raw(pending_, masked_crc32c(message));
  if (pending_.size() >= kFlushBytes) flush();
}

void EventWriter::flush() {
  std::size_t done = 0;
  while (done < pending_.size()) {
    ssize_t n = ::write(descriptor_, pending_.data() + done, pending_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      int reason = errno;
      pending_.erase(0, done);  // a later flush goes on where this one stopped
      throw MachineError("{}: cannot be written: {}", path_.string(), std::strerror(reason));
    }
    done += static_cast<std::size_t>(n);
  }
  pending_.clear();
}

namespace {

// ---- reading ----

template <typename Value>
Value raw_at(std::string_view bytes, std::size_t at) {
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof(Value));
  return value;
}

// One field of a message: an integer (also the bits of fixed-width ones) or bytes.
struct Field {
  int number = 0;
  Wire wire = kVarint;
  uint64_t integer = 0;
  std::string_view bytes;
};

struct Malformed {};  // caught by read_event_file, which knows the file and the offset

uint64_t take_varint(std::string_view& rest) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  throw Malformed{};
}

std::string_view take_bytes(std::string_view& rest, uint64_t size) {
  if (size > rest.size()) throw Malformed{};
  std::string_view bytes = rest.substr(0, size);
  rest.remove_prefix(size);
  return bytes;
}

// The next field of `rest`, which must not be empty.
Field take_field(std::string_view& rest) {
  uint64_t key = take_varint(rest);
  Field out;
  out.number = static_cast<int>(key >> 3);
  out.wire = static_cast<Wire>(key & 7);
  switch (out.wire) {
    case kVarint:
      out.integer = take_varint(rest);
      return out;
    case kFixed64:
      out.integer = raw_at<uint64_t>(take_bytes(rest, 8), 0);
      return out;
    case kBytes:
      out.bytes = take_bytes(rest, take_varint(rest));
      return out;
    case kFixed32:
      out.integer = raw_at<uint32_t>(take_bytes(rest, 4), 0);
      return out;
  }
  throw Malformed{};
}

// The bytes of the last field `number` in a message; empty when it is absent.
std::string_view find_bytes(std::string_view message, int number) {
  std::string_view found;
  while (!message.empty()) {
    Field f = take_field(message);
    if (f.number == number && f.wire == kBytes) found = f.bytes;
  }
  return found;
}

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string_view version, summary;
};

Event parse_event(std::string_view message) {
  Event out;
  while (!message.empty()) {
    Field f = take_field(message);
    if (f.number == field::kEventWallTime && f.wire == kFixed64) {
      out.wall_time = std::bit_cast<double>(f.integer);
    } else if (f.number == field::kEventStep && f.wire == kVarint) {
      out.step = static_cast<int64_t>(f.integer);
    } else if (f.number == field::kEventVersion && f.wire == kBytes) {
      out.version = f.bytes;
    } else if (f.number == field::kEventSummary && f.wire == kBytes) {
      out.summary = f.bytes;
    }
  }
  return out;
}

void keep_value(const Event& event, std::string_view value, EventFile& out) {
  std::string_view tag, tensor, metadata;
  std::optional<float> simple;
  while (!value.empty()) {
    Field f = take_field(value);
    if (f.number == field::kValueSimple && f.wire == kFixed32) {
      simple = std::bit_cast<float>(static_cast<uint32_t>(f.integer));
    }
    if (f.wire != kBytes) continue;
    if (f.number == field::kValueTag) tag = f.bytes;
    if (f.number == field::kValueTensor) tensor = f.bytes;
    if (f.number == field::kValueMetadata) metadata = f.bytes;
  }
  if (simple) {
    out.scalars.push_back({std::string(tag), event.step, event.wall_time, *simple});
    return;
  }
  std::string_view plugin = find_bytes(metadata, field::kMetadataPlugin);
  if (find_bytes(plugin, field::kPluginName) != "text") return;
  out.texts.push_back({std::string(tag), event.step, event.wall_time,
                       std::string(find_bytes(tensor, field::kTensorStrings))});
}

void keep_event(std::string_view message, EventFile& out) {
  Event event = parse_event(message);
  if (!event.version.empty()) out.version = event.version;
  while (!event.summary.empty()) {
    Field f = take_field(event.summary);
    if (f.number == field::kSummaryValue && f.wire == kBytes) keep_value(event, f.bytes, out);
  }
}

void check_crc(const fs::path& path, std::string_view covered, uint32_t found, std::size_t offset) {
  uint32_t expected = masked_crc32c(covered);
  if (found == expected) return;
  throw DataError("{}: damaged at byte {}: masked CRC-32C {:08x}, expected {:08x}", path.string(),
                  offset, found, expected);
}

}  // namespace

EventFile read_event_file(const fs::path& path) {
  MappedFile file(path);
  std::string_view all(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  EventFile out;
  // A frame: length (8 bytes), its checksum (4), the message, its checksum (4).
  for (std::size_t at = 0; at < all.size();) {
    std::size_t left = all.size() - at;
    bool whole = left >= 12;
    if (whole) check_crc(path, all.substr(at, 8), raw_at<uint32_t>(all, at + 8), at + 8);
    uint64_t length = whole ? raw_at<uint64_t>(all, at) : 0;
    if (!whole || left < 16 || length > left - 16) {
      out.truncated_at = static_cast<int64_t>(at);
      return out;
    }
    std::string_view message = all.substr(at + 12, length);
    check_crc(path, message, raw_at<uint32_t>(all, at + 12 + length), at + 12 + length);
    try {
      keep_event(message, out);
    } catch (const Malformed&) {
      throw DataError("{}: the record at byte {} is no TensorBoard event", path.string(), at);
    }
    ++out.records;
    at += 16 + length;
  }
  return out;
}

}  // namespace lockstep
