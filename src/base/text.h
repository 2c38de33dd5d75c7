// Small text helpers: splitting, numbers and times for people, similar names, UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// "a,b,,c" -> {"a", "b", "", "c"}; an empty text gives one empty field.
std::vector<std::string> split(std::string_view text, char separator);
// Returns the words between runs of ASCII white space; none for a blank text.
std::vector<std::string_view> split_words(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
// Removes ASCII white space at both ends.
std::string_view trim(std::string_view text);
// Converts ASCII letters to lower case and keeps everything else.
std::string lower_ascii(std::string_view text);
// Compares texts and ignores the case of ASCII letters.
bool equals_ignoring_case(std::string_view a, std::string_view b);

// (1, "host") -> "1 host", (3, "host") -> "3 hosts".
std::string counted(std::size_t count, std::string_view noun);
// 1234567 -> "1,234,567".
std::string with_commas(int64_t value);
// 24123.0 -> "24.1k", 1.5e6 -> "1.50M"; below 1000 three significant digits; "-" if not finite.
std::string short_number(double value);
// 45.2 -> "45 s", 3725 -> "1 h 02 m"; "-" for values that are negative or not finite.
std::string short_duration(double seconds);
// 1536 -> "1.5 kB" (decimal units).
std::string short_bytes(double bytes);

// Returns the number of edits (insertion, deletion, replacement, swap of neighbours) from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b);
// Returns the name most similar to `wrong` if it is similar enough to be what the user meant.
std::optional<std::string> nearest_name(std::string_view wrong,
                                        const std::vector<std::string>& names);
// Returns "; did you mean X?" or an empty string.
std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& names);

// Returns the byte offset of the first byte that is not part of valid UTF-8 (RFC 3629), if any.
std::optional<std::size_t> invalid_utf8_at(std::string_view text);
// Decodes UTF-8 to code points. Bytes that are not valid become U+FFFD.
std::u32string to_code_points(std::string_view text);
std::string to_utf8(std::u32string_view text);
void append_utf8(char32_t code_point, std::string& out);

}  // namespace lockstep
