#include "data/model_proto.h"

#include <array>
#include <cstring>
#include <utility>

namespace lockstep {

namespace {

// Types of pieces.
constexpr uint64_t kNormal = 1;
constexpr uint64_t kUnknown = 2;
constexpr uint64_t kControl = 3;

void append_varint(uint64_t value, std::string& out) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

void append_bytes(uint64_t field, std::string_view bytes, std::string& out) {
  append_varint(field << 3 | 2, out);
  append_varint(bytes.size(), out);
  out.append(bytes);
}

void append_piece(std::string_view text, float score, uint64_t type, std::string& out) {
  std::string piece;
  append_bytes(1, text, piece);
  append_varint(2 << 3 | 5, piece);
  piece.append(reinterpret_cast<const char*>(&score), sizeof score);  // little-endian, as here
  if (type != kNormal) {
    append_varint(3 << 3, piece);
    append_varint(type, piece);
  }
  append_bytes(1, piece, out);
}

// The description of the training, with another size of the vocabulary (field 4).
std::string with_size(std::string_view spec, std::size_t size) {
  std::string out;
  for_each_field(spec, [&](const ProtoField& field) {
    if (field.number != 4) out.append(field.whole);
  });
  append_varint(4 << 3, out);
  append_varint(size, out);
  return out;
}

}  // namespace

std::string with_pieces(std::string_view model, const std::vector<std::string>& pieces) {
  constexpr std::array<std::pair<std::string_view, uint64_t>, 4> kSpecial{
      {{"<pad>", kControl}, {"</s>", kControl}, {"<s>", kControl}, {"<unk>", kUnknown}}};
  std::string out;
  for (const auto& [text, type] : kSpecial) append_piece(text, 0, type, out);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    append_piece(pieces[i], -static_cast<float>(i), kNormal, out);
  }
  for_each_field(model, [&](const ProtoField& field) {
    if (field.number == 2) {
      append_bytes(2, with_size(field.bytes, pieces.size() + kSpecial.size()), out);
    } else if (field.number != 1) {
      out.append(field.whole);
    }
  });
  return out;
}

}  // namespace lockstep
