// Protocol-buffer messages (proto3's wire format) written and read by hand: what files of others
// ask for without their library.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// A message under construction. Fields come in the order of the calls; proto3 leaves out those that
// are zero: the caller's affair.
class ProtoWriter {
 public:
  ProtoWriter& integer(int number, int64_t value);  // also enums and booleans
  ProtoWriter& real(int number, double value);      // fixed64
  ProtoWriter& real32(int number, float value);     // fixed32
  ProtoWriter& bytes(int number, std::string_view value);
  ProtoWriter& message(int number, const ProtoWriter& value) { return bytes(number, value.text()); }
  ProtoWriter& packed(int number, std::span<const double> values);  // repeated double
  ProtoWriter& append(std::string_view fields);                     // encoded already

  const std::string& text() const { return text_; }

 private:
  void key(int number, int wire);

  std::string text_;
};

struct ProtoField {
  enum Wire : int { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  int number = 0;
  Wire wire = kVarint;
  uint64_t integer = 0;    // of kVarint; the bits of fixed-width ones
  std::string_view bytes;  // of kBytes; a view of the message

  bool is(int wanted, Wire as) const { return number == wanted && wire == as; }
  double real() const;   // REQUIRES: kFixed64
  float real32() const;  // REQUIRES: kFixed32
};

// What readers throw for a message that is none; who knows the file and the place makes an error of
// it.
struct MalformedProto {};

// Goes through the fields of a message, which must outlive it.
class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : rest_(message) {}
  // False at the end. Throws MalformedProto.
  bool next(ProtoField& field);

 private:
  std::string_view rest_;
};

// The bytes of the last field `number` in a message; empty when it is absent.
std::string_view find_proto_bytes(std::string_view message, int number);

}  // namespace lockstep
