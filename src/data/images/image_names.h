// Interprets the names of image files and folders.
#pragma once

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

}  // namespace lockstep
