// Reads TensorBoard's event files, so that tests can check what was written into them.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/crc32c.h"
#include "formats/event_fields.h"
#include "formats/event_file.h"
#include "formats/protobuf.h"

namespace lockstep {

struct ScalarEvent {
  std::string tag;
  int64_t step = 0;
  double wall_time = 0;  // seconds since 1970
  float value = 0;
};

struct TextEvent {
  std::string tag;
  int64_t step = 0;
  double wall_time = 0;  // seconds since 1970
  std::string markdown;
};

struct ImageEvent {
  std::string tag;
  int64_t step = 0;
  double wall_time = 0;
  int64_t width = 0, height = 0;
  std::string png;  // the encoded file
};

struct HistogramEvent {
  std::string tag;
  int64_t step = 0;
  double wall_time = 0;
  Histogram values;
};

// What the plugin `hparams` stored under one of its tags (hyper_parameters.h).
struct HyperEvent {
  std::string tag;
  std::string data;
};

struct EventFile {
  std::string version;  // "brain.Event:2"
  std::vector<ScalarEvent> scalars;
  std::vector<TextEvent> texts;
  std::vector<ImageEvent> images;
  std::vector<HistogramEvent> histograms;
  std::vector<HyperEvent> hyper;
  int64_t records = 0;  // whole records, including kinds that are not kept
  // Where the last record begins if the file ends within it: its writer was killed, or is still at
  // work.
  std::optional<int64_t> truncated_at;
};

namespace event_reader {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

template <typename Value>
Value raw_at(std::string_view bytes, std::size_t at) {
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof(Value));
  return value;
}

// Returns the bytes of the last field `number` in a message; empty when it is absent.
inline std::string_view last_bytes(std::string_view message, uint32_t number) {
  std::string_view found;
  pbf_reader reader(message);
  while (reader.next(number, pbf_wire_type::length_delimited)) found = reader.get_view();
  return found;
}

inline std::vector<double> doubles(pbf_reader& reader) {
  const auto range = reader.get_packed_double();
  return {range.begin(), range.end()};
}

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string_view version, summary;
};

inline Event parse_event(std::string_view message) {
  Event out;
  pbf_reader reader(message);
  while (reader.next()) {
    switch (reader.tag()) {
      case detail::kEventWallTime:
        out.wall_time = reader.get_double();
        break;
      case detail::kEventStep:
        out.step = reader.get_int64();
        break;
      case detail::kEventVersion:
        out.version = reader.get_view();
        break;
      case detail::kEventSummary:
        out.summary = reader.get_view();
        break;
      default:
        reader.skip();
    }
  }
  return out;
}

inline Histogram parse_histogram(std::string_view message) {
  Histogram out;
  pbf_reader reader(message);
  while (reader.next()) {
    switch (reader.tag()) {
      case detail::kHistogramMin:
        out.min = reader.get_double();
        break;
      case detail::kHistogramMax:
        out.max = reader.get_double();
        break;
      case detail::kHistogramCount:
        out.count = reader.get_double();
        break;
      case detail::kHistogramSum:
        out.sum = reader.get_double();
        break;
      case detail::kHistogramSquares:
        out.sum_squares = reader.get_double();
        break;
      case detail::kHistogramLimits:
        out.limits = doubles(reader);
        break;
      case detail::kHistogramCounts:
        out.counts = doubles(reader);
        break;
      default:
        reader.skip();
    }
  }
  return out;
}

inline ImageEvent parse_image(std::string_view message) {
  ImageEvent out;
  pbf_reader reader(message);
  while (reader.next()) {
    switch (reader.tag()) {
      case detail::kImageHeight:
        out.height = reader.get_int64();
        break;
      case detail::kImageWidth:
        out.width = reader.get_int64();
        break;
      case detail::kImageFile:
        out.png = reader.get_string();
        break;
      default:
        reader.skip();
    }
  }
  return out;
}

// A Summary.Value: field `number` tells its kind; `bytes` or `simple` holds its content.
struct Value {
  std::string tag;
  uint32_t number = 0;
  float simple = 0;
  std::string_view bytes, metadata;
};

inline Value parse_value(std::string_view message) {
  Value out;
  pbf_reader reader(message);
  while (reader.next()) {
    switch (reader.tag()) {
      case detail::kValueTag:
        out.tag = reader.get_string();
        break;
      case detail::kValueMetadata:
        out.metadata = reader.get_view();
        break;
      case detail::kValueSimple:
        out.number = reader.tag();
        out.simple = reader.get_float();
        break;
      case detail::kValueTensor:
      case detail::kValueImage:
      case detail::kValueHistogram:
        out.number = reader.tag();
        out.bytes = reader.get_view();
        break;
      default:
        reader.skip();
    }
  }
  return out;
}

inline void keep_tensor(const Event& event, Value value, EventFile& out) {
  const std::string_view plugin = last_bytes(value.metadata, detail::kMetadataPlugin);
  const std::string_view name = last_bytes(plugin, detail::kPluginName);
  if (name == kTextPlugin) {
    out.texts.push_back({std::move(value.tag), event.step, event.wall_time,
                         std::string(last_bytes(value.bytes, detail::kTensorStrings))});
  } else if (name == kHyperPlugin) {
    out.hyper.push_back(
        {std::move(value.tag), std::string(last_bytes(plugin, detail::kPluginContent))});
  }
}

inline void keep_value(const Event& event, std::string_view message, EventFile& out) {
  Value value = parse_value(message);
  switch (value.number) {
    case detail::kValueSimple:
      out.scalars.push_back({std::move(value.tag), event.step, event.wall_time, value.simple});
      return;
    case detail::kValueTensor:
      return keep_tensor(event, std::move(value), out);
    case detail::kValueHistogram:
      out.histograms.push_back(
          {std::move(value.tag), event.step, event.wall_time, parse_histogram(value.bytes)});
      return;
    case detail::kValueImage: {
      ImageEvent image = parse_image(value.bytes);
      image.tag = std::move(value.tag);
      image.step = event.step;
      image.wall_time = event.wall_time;
      out.images.push_back(std::move(image));
      return;
    }
  }
}

inline void keep_event(std::string_view message, EventFile& out) {
  const Event event = parse_event(message);
  if (!event.version.empty()) out.version = event.version;
  pbf_reader reader(event.summary);
  while (reader.next(detail::kSummaryValue, pbf_wire_type::length_delimited)) {
    keep_value(event, reader.get_view(), out);
  }
}

inline void check_crc(const fs::path& path, std::string_view covered, uint32_t found,
                      std::size_t offset) {
  uint32_t expected = masked_crc32c(covered);
  if (found == expected) return;
  throw DataError("{}: damaged at byte {}: masked CRC-32C {:08x}, expected {:08x}", path.string(),
                  offset, found, expected);
}

}  // namespace event_reader

// Reads what EventWriter writes, in the order of the file; skips other kinds of values. Throws
// DataError, naming the byte offset, for a wrong checksum or a malformed message.
inline EventFile read_event_file(const fs::path& path) {
  using namespace event_reader;
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
    } catch (const protozero::exception&) {
      throw DataError("{}: the record at byte {} is no TensorBoard event", path.string(), at);
    }
    ++out.records;
    at += 16 + length;
  }
  return out;
}

// Returns the names and values that EventWriter::session_start stored under kSessionStartTag. The
// field numbers are those of plugin_data.proto, api.proto and google/protobuf/struct.proto.
inline std::vector<std::pair<std::string, HyperValue>> decode_session_start(std::string_view data) {
  using namespace event_reader;
  std::vector<std::pair<std::string, HyperValue>> out;
  pbf_reader start(last_bytes(data, 3));
  while (start.next(1, pbf_wire_type::length_delimited)) {
    const std::string_view entry = start.get_view();
    pbf_reader value(last_bytes(entry, 2));
    if (!value.next()) throw DataError("a hyperparameter without a value");
    HyperValue decoded;
    if (value.tag() == 2) decoded = value.get_double();
    if (value.tag() == 3) decoded = value.get_string();
    if (value.tag() == 4) decoded = value.get_bool();
    out.emplace_back(last_bytes(entry, 1), decoded);
  }
  return out;
}

}  // namespace lockstep
