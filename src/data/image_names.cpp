#include "data/image_names.h"

#include <algorithm>

namespace lockstep {

namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

}  // namespace

std::string format_of_name(std::string_view file) {
  std::string name = lower(file);
  if (name.ends_with(".png")) return "PNG";
  return name.ends_with(".jpg") || name.ends_with(".jpeg") ? "JPEG" : "";
}

bool is_image_name(std::string_view file) {
  return !file.starts_with(".") && !format_of_name(file).empty();
}

std::string split_of_name(std::string_view name) {
  std::string text = lower(name);
  auto is = [&](std::string_view word) {
    return text == word || text.ends_with("_" + std::string(word));
  };
  if (is("train")) return "train";
  if (is("val") || is("validation") || is("valid")) return "val";
  return is("test") ? "test" : "";
}

}  // namespace lockstep
