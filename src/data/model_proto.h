// SentencePiece's model file as what it is, a protocol buffer message (sentencepiece_model.proto):
// its fields one by one, and its pieces replaced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// One field of a message: its number, and either a number or bytes.
struct ProtoField {
  uint64_t number = 0, value = 0;
  std::string_view bytes;
  std::string_view whole;  // with its number, as it is stored
};

inline std::optional<uint64_t> take_varint(std::string_view& rest) {
  uint64_t out = 0;
  for (int shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    out |= uint64_t{byte & 127u} << shift;
    if (byte < 128) return out;
  }
  return std::nullopt;
}

// Calls visit(field) for each field; false when the message is damaged.
template <typename Visit>
bool for_each_field(std::string_view rest, const Visit& visit) {
  while (!rest.empty()) {
    const char* begin = rest.data();
    std::optional<uint64_t> key = take_varint(rest);
    if (!key) return false;
    ProtoField field;
    field.number = *key >> 3;
    std::size_t bytes = 0;
    switch (*key & 7) {
      case 0: {
        std::optional<uint64_t> value = take_varint(rest);
        if (!value) return false;
        field.value = *value;
        break;
      }
      case 1:
        bytes = 8;
        break;
      case 2: {
        std::optional<uint64_t> size = take_varint(rest);
        if (!size || *size > rest.size()) return false;
        bytes = static_cast<std::size_t>(*size);
        break;
      }
      case 5:
        bytes = 4;
        break;
      default:
        return false;
    }
    if (bytes > rest.size()) return false;
    field.bytes = rest.substr(0, bytes);
    rest.remove_prefix(bytes);
    field.whole = {begin, static_cast<std::size_t>(rest.data() - begin)};
    visit(field);
  }
  return true;
}

// `model` with other pieces: <pad>, </s>, <s>, <unk>, then `pieces`, the nth with score -n.
// Everything else stays, but for the size of the vocabulary in its description.
std::string with_pieces(std::string_view model, const std::vector<std::string>& pieces);

}  // namespace lockstep
