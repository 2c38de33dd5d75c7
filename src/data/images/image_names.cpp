#include "data/images/image_names.h"

#include "base/text.h"

namespace lockstep {

std::string format_of_name(std::string_view file) {
  std::string name = lower_ascii(file);
  if (name.ends_with(".png")) return "PNG";
  return name.ends_with(".jpg") || name.ends_with(".jpeg") ? "JPEG" : "";
}

bool is_image_name(std::string_view file) {
  return !file.starts_with(".") && !format_of_name(file).empty();
}

std::string split_of_name(std::string_view name) {
  std::string text = lower_ascii(name);
  auto is = [&](std::string_view word) {
    return text == word || text.ends_with("_" + std::string(word));
  };
  if (is("train")) return "train";
  if (is("val") || is("validation") || is("valid")) return "val";
  return is("test") ? "test" : "";
}

}  // namespace lockstep
