#include "formats/npy_file.h"

#include <fmt/ranges.h>

#include <cctype>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

// Returns what follows the word `key` and a colon in the head of a .npy file, a dictionary of
// Python.
std::string_view npy_value(std::string_view head, std::string_view key, const std::string& name) {
  std::size_t at = head.find(key);
  if (at != std::string_view::npos) at = head.find(':', at + key.size());
  if (at == std::string_view::npos) throw DataError("{}: its head has no {}", name, key);
  return trim(head.substr(at + 1));
}

}  // namespace

std::string NpyFile::text() const { return fmt::format("{} of {}", fmt::join(shape, " x "), type); }

NpyFile read_npy(std::string_view bytes, const std::string& name) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) {
    throw DataError("{}: no .npy file of NumPy", name);
  }
  const bool first_version = bytes[6] == 1;
  uint32_t head_bytes = 0;
  std::memcpy(&head_bytes, bytes.data() + 8, first_version ? 2 : 4);
  bytes.remove_prefix(first_version ? 10 : 12);
  if (head_bytes > bytes.size()) throw DataError("{}: cut off within its head", name);
  const std::string_view head = bytes.substr(0, head_bytes);
  NpyFile out{.type = {}, .shape = {}, .data = bytes.substr(head_bytes)};
  const std::string_view type = npy_value(head, "'descr'", name);
  if (type.size() > 1 && type[0] == '\'') out.type = type.substr(1, type.find('\'', 1) - 1);
  if (!npy_value(head, "'fortran_order'", name).starts_with("False")) {
    throw DataError("{}: its order is Fortran's; save numpy.ascontiguousarray(x)", name);
  }
  std::string_view shape = npy_value(head, "'shape'", name);
  const std::size_t end = shape.find(')');
  if (!shape.starts_with('(') || end == std::string_view::npos) {
    throw DataError("{}: its head has no shape", name);
  }
  unsigned __int128 total = 1;
  for (const std::string& part : split(shape.substr(1, end - 1), ',')) {
    const std::string_view digits = trim(part);
    if (digits.empty()) continue;
    uint32_t size = 0;
    const auto [stop, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), size);
    const bool whole = problem == std::errc() && stop == digits.data() + digits.size();
    if (!whole || out.shape.size() == 4 || total > UINT64_MAX / 16) {
      throw DataError("{}: its shape ({}) is not of images", name, shape.substr(1, end - 1));
    }
    out.shape.push_back(size);
    total *= size;
  }
  const int width = out.type.size() == 3 && std::isdigit(out.type[2]) != 0 ? out.type[2] - '0' : 0;
  if (width == 0 || total * static_cast<unsigned>(width) != out.data.size()) {
    throw DataError("{}: has {} bytes of data, which are not {}: cut off, or of another type", name,
                    out.data.size(), out.text());
  }
  return out;
}

}  // namespace lockstep
