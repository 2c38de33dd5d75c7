#include "data/tokenize/model_proto.h"

#include <array>
#include <cstdint>
#include <utility>

#include "formats/protobuf.h"

namespace lockstep {

namespace {

using protozero::pbf_writer;

// The types of pieces.
constexpr int32_t kNormal = 1;
constexpr int32_t kUnknown = 2;
constexpr int32_t kControl = 3;

void put_piece(std::string_view text, float score, int32_t type, pbf_writer& model) {
  pbf_writer piece(model, 1);
  piece.add_bytes(1, text);
  piece.add_float(2, score);
  if (type != kNormal) piece.add_enum(3, type);
}

// Calls visit(reader, whole) for each field, where `whole` is the field as stored, including its
// number.
template <typename Visit>
void for_each_field(std::string_view message, const Visit& visit) {
  protozero::pbf_reader reader(message);
  while (reader) {
    const char* begin = reader.data().data();
    reader.next();
    protozero::pbf_reader field = reader;
    reader.skip();
    visit(field, std::string_view(begin, static_cast<std::size_t>(reader.data().data() - begin)));
  }
}

// Returns the training description with another vocabulary size (field 4).
std::string with_size(std::string_view spec, std::size_t size) {
  std::string out;
  for_each_field(spec, [&](protozero::pbf_reader& field, std::string_view whole) {
    if (field.tag() != 4) out.append(whole);
  });
  pbf_writer(out).add_uint64(4, size);
  return out;
}

}  // namespace

std::string with_pieces(std::string_view model, const std::vector<std::string>& pieces) {
  constexpr std::array<std::pair<std::string_view, int32_t>, 4> kSpecial{
      {{"<pad>", kControl}, {"</s>", kControl}, {"<s>", kControl}, {"<unk>", kUnknown}}};
  std::string out;
  pbf_writer changed(out);
  for (const auto& [text, type] : kSpecial) put_piece(text, 0, type, changed);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    put_piece(pieces[i], -static_cast<float>(i), kNormal, changed);
  }
  for_each_field(model, [&](protozero::pbf_reader& field, std::string_view whole) {
    if (field.tag() == 2) {
      changed.add_message(2, with_size(field.get_view(), pieces.size() + kSpecial.size()));
    } else if (field.tag() != 1) {
      out.append(whole);
    }
  });
  return out;
}

}  // namespace lockstep
