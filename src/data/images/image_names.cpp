#include "data/images/image_names.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "base/text.h"

namespace lockstep {

namespace {

const std::set<std::string, std::less<>> kUnread = {".webp", ".bmp",  ".gif",  ".tif", ".tiff",
                                                    ".heic", ".heif", ".avif", ".jp2", ".jxl"};

}  // namespace

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

void UnreadPictures::note(std::string_view file) {
  const std::size_t dot = file.rfind('.');
  if (file.starts_with(".") || dot == std::string_view::npos) return;
  const std::string ending = lower_ascii(file.substr(dot));
  if (kUnread.contains(ending)) ++by_ending_[ending];
}

void UnreadPictures::add(const UnreadPictures& others) {
  for (const auto& [ending, count] : others.by_ending_) by_ending_[ending] += count;
}

std::string UnreadPictures::text() const {
  std::vector<std::string> kinds;
  for (const auto& [ending, count] : by_ending_) {
    kinds.push_back(fmt::format("{} {}", with_commas(count), ending));
  }
  return join(kinds, " and ") + " not read: convert them to JPEG or PNG";
}

}  // namespace lockstep
