// The reading half of event_file.h.
#include <cstring>
#include <utility>

#include "base/error.h"
#include "formats/crc32c.h"
#include "formats/event_fields.h"
#include "formats/event_file.h"
#include "formats/proto_message.h"

namespace lockstep {

namespace {

template <typename Value>
Value raw_at(std::string_view bytes, std::size_t at) {
  Value value;
  std::memcpy(&value, bytes.data() + at, sizeof(Value));
  return value;
}

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string_view version, summary;
};

Event parse_event(std::string_view message) {
  Event out;
  ProtoReader reader(message);
  for (ProtoField f; reader.next(f);) {
    if (f.is(detail::kEventWallTime, ProtoField::kFixed64)) out.wall_time = f.real();
    if (f.is(detail::kEventStep, ProtoField::kVarint)) out.step = static_cast<int64_t>(f.integer);
    if (f.is(detail::kEventVersion, ProtoField::kBytes)) out.version = f.bytes;
    if (f.is(detail::kEventSummary, ProtoField::kBytes)) out.summary = f.bytes;
  }
  return out;
}

std::vector<double> packed(std::string_view bytes) {
  if (bytes.size() % sizeof(double) != 0) throw MalformedProto{};
  std::vector<double> out(bytes.size() / sizeof(double));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

Histogram parse_histogram(std::string_view message) {
  Histogram out;
  ProtoReader reader(message);
  for (ProtoField f; reader.next(f);) {
    if (f.is(detail::kHistogramMin, ProtoField::kFixed64)) out.min = f.real();
    if (f.is(detail::kHistogramMax, ProtoField::kFixed64)) out.max = f.real();
    if (f.is(detail::kHistogramCount, ProtoField::kFixed64)) out.count = f.real();
    if (f.is(detail::kHistogramSum, ProtoField::kFixed64)) out.sum = f.real();
    if (f.is(detail::kHistogramSquares, ProtoField::kFixed64)) out.sum_squares = f.real();
    if (f.is(detail::kHistogramLimits, ProtoField::kBytes)) out.limits = packed(f.bytes);
    if (f.is(detail::kHistogramCounts, ProtoField::kBytes)) out.counts = packed(f.bytes);
  }
  return out;
}

ImageEvent parse_image(std::string_view message) {
  ImageEvent out;
  ProtoReader reader(message);
  for (ProtoField f; reader.next(f);) {
    if (f.is(detail::kImageHeight, ProtoField::kVarint)) out.height = f.integer;
    if (f.is(detail::kImageWidth, ProtoField::kVarint)) out.width = f.integer;
    if (f.is(detail::kImageFile, ProtoField::kBytes)) out.png = f.bytes;
  }
  return out;
}

// Of a Summary.Value: `number` is the field that says what it holds, `bytes` or `simple` that.
struct Value {
  std::string tag;
  int number = 0;
  float simple = 0;
  std::string_view bytes, metadata;
};

Value parse_value(std::string_view message) {
  Value out;
  ProtoReader reader(message);
  for (ProtoField f; reader.next(f);) {
    if (f.is(detail::kValueTag, ProtoField::kBytes)) out.tag = f.bytes;
    if (f.is(detail::kValueMetadata, ProtoField::kBytes)) out.metadata = f.bytes;
    if (f.is(detail::kValueSimple, ProtoField::kFixed32)) {
      out.number = f.number;
      out.simple = f.real32();
    }
    for (int kind : {detail::kValueTensor, detail::kValueImage, detail::kValueHistogram}) {
      if (!f.is(kind, ProtoField::kBytes)) continue;
      out.number = kind;
      out.bytes = f.bytes;
    }
  }
  return out;
}

void keep_tensor(const Event& event, Value value, EventFile& out) {
  const std::string_view plugin = find_proto_bytes(value.metadata, detail::kMetadataPlugin);
  const std::string_view name = find_proto_bytes(plugin, detail::kPluginName);
  if (name == kTextPlugin) {
    out.texts.push_back({std::move(value.tag), event.step, event.wall_time,
                         std::string(find_proto_bytes(value.bytes, detail::kTensorStrings))});
  } else if (name == kHyperPlugin) {
    out.hyper.push_back(
        {std::move(value.tag), std::string(find_proto_bytes(plugin, detail::kPluginContent))});
  }
}

void keep_value(const Event& event, std::string_view message, EventFile& out) {
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

void keep_event(std::string_view message, EventFile& out) {
  const Event event = parse_event(message);
  if (!event.version.empty()) out.version = event.version;
  ProtoReader reader(event.summary);
  for (ProtoField f; reader.next(f);) {
    if (f.is(detail::kSummaryValue, ProtoField::kBytes)) keep_value(event, f.bytes, out);
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
    } catch (const MalformedProto&) {
      throw DataError("{}: the record at byte {} is no TensorBoard event", path.string(), at);
    }
    ++out.records;
    at += 16 + length;
  }
  return out;
}

}  // namespace lockstep
