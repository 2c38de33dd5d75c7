#include "formats/mo_file.h"

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr uint32_t kMoMagic = 0x950412de;
constexpr char kContextEnd = '\x04';

// Reads words and strings of the file and checks each against the file's size first.
class MoReader {
 public:
  MoReader(std::span<const std::byte> bytes, const std::string& name) : name_(name), bytes_(bytes) {
    uint32_t magic = word(0);
    swapped_ = magic == __builtin_bswap32(kMoMagic);
    if (magic != kMoMagic && !swapped_) {
      throw DataError("{}: not a gettext catalogue: it starts with {:08x}, expected {:08x}", name_,
                      magic, kMoMagic);
    }
  }

  uint32_t word(uint64_t offset) const {
    if (offset + 4 > bytes_.size()) {
      throw DataError("{}: offset {}: the file ends here, expected a number ({} bytes in all)",
                      name_, offset, bytes_.size());
    }
    uint32_t value;
    std::memcpy(&value, bytes_.data() + offset, 4);
    return swapped_ ? __builtin_bswap32(value) : value;
  }

  // Returns the string whose descriptor (length, offset) is at `descriptor`. It may contain NUL
  // bytes.
  std::string_view string(uint64_t descriptor) const {
    uint64_t length = word(descriptor);
    uint64_t offset = word(descriptor + 4);
    if (offset + length + 1 > bytes_.size()) {
      throw DataError("{}: offset {}: names a text of {} bytes at {}, but the file has {} bytes",
                      name_, descriptor, length, offset, bytes_.size());
    }
    std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + offset, length);
    if (text.data()[length] != '\0') {
      throw DataError("{}: offset {}: the text does not end with a NUL byte", name_,
                      offset + length);
    }
    return text;
  }

  // Does the same and checks that the string is UTF-8.
  std::string_view text(uint64_t descriptor) const {
    std::string_view out = string(descriptor);
    if (std::optional<std::size_t> bad = invalid_utf8_at(out)) {
      throw DataError("{}: offset {}: byte 0x{:02x} is not valid UTF-8", name_,
                      word(descriptor + 4) + *bad, static_cast<unsigned char>(out[*bad]));
    }
    return out;
  }

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
  bool swapped_ = false;
};

// The header gives the encoding of the other texts: "Content-Type: text/plain; charset=UTF-8".
void require_utf8(const std::string& name, std::string_view header) {
  std::string text = lower_ascii(header);
  std::size_t at = text.find("charset=");
  if (at == std::string::npos) {
    throw DataError("{}: its header names no charset, expected UTF-8", name);
  }
  std::string_view charset = std::string_view(text).substr(at + 8);
  charset = charset.substr(0, charset.find_first_of(" \t\r\n;"));
  if (charset == "utf-8" || charset == "utf8" || charset == "us-ascii" || charset == "ascii")
    return;
  throw DataError("{}: its charset is \"{}\", expected UTF-8", name, charset);
}

MoEntry make_entry(std::string_view original, std::string_view translation) {
  MoEntry entry;
  if (std::size_t end = original.find(kContextEnd); end != std::string_view::npos) {
    entry.context = original.substr(0, end);
    original.remove_prefix(end + 1);
  }
  std::size_t singular = original.find('\0');
  entry.id = original.substr(0, singular);
  if (singular != std::string_view::npos) {
    std::string_view rest = original.substr(singular + 1);
    entry.id_plural = rest.substr(0, rest.find('\0'));
  }
  entry.translations = split(translation, '\0');
  return entry;
}

}  // namespace

MoFile read_mo_file(const fs::path& path) {
  MappedFile file(path);
  return parse_mo_file(file.bytes(), path.string());
}

MoFile parse_mo_file(std::span<const std::byte> bytes, const std::string& name) {
  MoReader reader(bytes, name);
  uint32_t revision = reader.word(4);
  // Minor revision 1 adds system-dependent strings. The tables that are read here stay the same.
  if (revision >> 16 > 1) {
    throw DataError("{}: offset 4: revision {}.{} is not known, expected 0 or 1", name,
                    revision >> 16, revision & 0xffff);
  }
  uint64_t count = reader.word(8);
  uint64_t originals = reader.word(12);
  uint64_t translations = reader.word(16);
  MoFile out;
  if (count == 0) return out;
  // The table is sorted, so the header (the empty message) comes first. It is read before all other
  // texts: another charset must be reported as such, not as a damaged byte.
  bool has_header = reader.string(originals).empty();
  require_utf8(name, has_header ? reader.string(translations) : "");
  out.header = reader.text(translations);
  for (uint64_t i = 1; i < count; ++i) {
    out.entries.push_back(
        make_entry(reader.text(originals + 8 * i), reader.text(translations + 8 * i)));
  }
  return out;
}

}  // namespace lockstep
