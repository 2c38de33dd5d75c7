#include "formats/proto_message.h"

#include <bit>
#include <cstring>

namespace lockstep {

namespace {

static_assert(std::endian::native == std::endian::little,
              "fixed-width fields are copied as they are");

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

uint64_t take_varint(std::string_view& rest) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  throw MalformedProto{};
}

std::string_view take_bytes(std::string_view& rest, uint64_t size) {
  if (size > rest.size()) throw MalformedProto{};
  std::string_view bytes = rest.substr(0, size);
  rest.remove_prefix(size);
  return bytes;
}

template <typename Value>
Value take_raw(std::string_view& rest) {
  const std::string_view bytes = take_bytes(rest, sizeof(Value));
  Value value;
  std::memcpy(&value, bytes.data(), sizeof(Value));
  return value;
}

}  // namespace

void ProtoWriter::key(int number, int wire) {
  put_varint(text_, static_cast<uint64_t>(number) << 3 | static_cast<uint64_t>(wire));
}

ProtoWriter& ProtoWriter::integer(int number, int64_t value) {
  key(number, ProtoField::kVarint);
  put_varint(text_, static_cast<uint64_t>(value));
  return *this;
}

ProtoWriter& ProtoWriter::real(int number, double value) {
  key(number, ProtoField::kFixed64);
  put_raw(text_, value);
  return *this;
}

ProtoWriter& ProtoWriter::real32(int number, float value) {
  key(number, ProtoField::kFixed32);
  put_raw(text_, value);
  return *this;
}

ProtoWriter& ProtoWriter::bytes(int number, std::string_view value) {
  key(number, ProtoField::kBytes);
  put_varint(text_, value.size());
  text_ += value;
  return *this;
}

ProtoWriter& ProtoWriter::packed(int number, std::span<const double> values) {
  key(number, ProtoField::kBytes);
  put_varint(text_, values.size_bytes());
  for (double value : values) put_raw(text_, value);
  return *this;
}

ProtoWriter& ProtoWriter::append(std::string_view fields) {
  text_ += fields;
  return *this;
}

double ProtoField::real() const { return std::bit_cast<double>(integer); }
float ProtoField::real32() const { return std::bit_cast<float>(static_cast<uint32_t>(integer)); }

bool ProtoReader::next(ProtoField& field) {
  if (rest_.empty()) return false;
  const uint64_t key = take_varint(rest_);
  field = {.number = static_cast<int>(key >> 3), .wire = static_cast<ProtoField::Wire>(key & 7)};
  switch (field.wire) {
    case ProtoField::kVarint:
      field.integer = take_varint(rest_);
      return true;
    case ProtoField::kFixed64:
      field.integer = take_raw<uint64_t>(rest_);
      return true;
    case ProtoField::kBytes:
      field.bytes = take_bytes(rest_, take_varint(rest_));
      return true;
    case ProtoField::kFixed32:
      field.integer = take_raw<uint32_t>(rest_);
      return true;
  }
  throw MalformedProto{};
}

std::string_view find_proto_bytes(std::string_view message, int number) {
  std::string_view found;
  ProtoReader reader(message);
  for (ProtoField f; reader.next(f);) {
    if (f.is(number, ProtoField::kBytes)) found = f.bytes;
  }
  return found;
}

}  // namespace lockstep
