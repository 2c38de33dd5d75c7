// Interprets the names of image files and folders.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace lockstep {

// Returns whether the name ends in .jpg, .jpeg or .png in any case and is not hidden.
bool is_image_name(std::string_view file);
// Returns "JPEG" for .jpg and .jpeg, "PNG" for .png.
std::string format_of_name(std::string_view file);
// Returns "train", "val" or "test" for a folder or archive of that name (also for "validation" or
// "ILSVRC2012_img_val"), else an empty string.
std::string split_of_name(std::string_view name);

// Counts pictures of formats that are not read, so that nobody misses them unknowingly.
class UnreadPictures {
 public:
  // Counts a file whose name ends in .webp, .bmp, .gif, .tiff, .heic, .avif, ... and is not hidden.
  void note(std::string_view file);
  void add(const UnreadPictures& others);
  bool empty() const { return by_ending_.empty(); }
  // Returns, for example, "12 .webp and 3 .gif not read: convert them to JPEG or PNG".
  std::string text() const;

 private:
  std::map<std::string, int64_t> by_ending_;
};

}  // namespace lockstep
