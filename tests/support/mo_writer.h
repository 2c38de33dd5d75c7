// Writes gettext catalogues for tests, in both byte orders.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::testing {

using MoStrings = std::vector<std::pair<std::string, std::string>>;  // sorted by the first

inline std::string mo_bytes(const MoStrings& strings, bool big_endian = false) {
  auto word = [&](std::size_t value) {
    std::string out;
    for (int i = 0; i < 4; ++i) {
      int shift = big_endian ? 24 - 8 * i : 8 * i;
      out += static_cast<char>((value >> shift) & 0xff);
    }
    return out;
  };
  std::size_t count = strings.size();
  std::size_t originals = 28;
  std::size_t translations = originals + 8 * count;
  std::string head = word(0x950412de) + word(0) + word(count) + word(originals) +
                     word(translations) + word(0) + word(0);
  std::string first;
  std::string second;
  std::string text;
  std::size_t start = translations + 8 * count;
  auto place = [&](const std::string& value, std::string& table) {
    table += word(value.size()) + word(start + text.size());
    text += value;
    text += '\0';
  };
  for (const auto& [original, translation] : strings) {
    place(original, first);
    place(translation, second);
  }
  return head + first + second + text;
}

inline std::pair<std::string, std::string> mo_header(const std::string& charset = "UTF-8") {
  return {"", "Project-Id-Version: test\nContent-Type: text/plain; charset=" + charset + "\n"};
}

}  // namespace lockstep::testing
