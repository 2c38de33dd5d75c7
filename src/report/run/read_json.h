// Reads values of JSON that a run wrote; an older program or a truncated file may lack them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep {

using ReadJson = nlohmann::json;

// Returns the number at that key, else `otherwise`.
inline double number(const ReadJson& object, const char* key, double otherwise = 0) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

inline int64_t whole(const ReadJson& object, const char* key) {
  return static_cast<int64_t>(number(object, key));
}

// Returns the text at that key, else an empty text.
inline std::string word(const ReadJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace lockstep
