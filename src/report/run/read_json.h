// Reads values of JSON that a run wrote; an older program or a truncated file may lack them.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

using ReadJson = nlohmann::json;

// Returns the number at that key, else `otherwise`.
inline double number(const ReadJson& object, const char* key, double otherwise = 0) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

// Returns the whole number nearest to zero; of a number that no int64_t holds, 0.
inline int64_t whole_of(double value) {
  constexpr double kBeyond = 9223372036854775808.0;  // 2^63
  return value > -kBeyond && value < kBeyond ? static_cast<int64_t>(value) : 0;
}
inline int64_t whole(const ReadJson& object, const char* key) {
  return whole_of(number(object, key));
}

// Returns the text at that key, else an empty text.
inline std::string word(const ReadJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace lockstep
