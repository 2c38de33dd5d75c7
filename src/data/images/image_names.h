// What the names of image files and folders tell.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// .jpg, .jpeg or .png in any case, and no hidden file.
bool is_image_name(std::string_view file);
// .JPEG and .jpg: "JPEG"; .png: "PNG".
std::string format_of_name(std::string_view file);
// "train", "val" or "test" for a folder or archive of that name (also "validation",
// "ILSVRC2012_img_val"); empty for others.
std::string split_of_name(std::string_view name);

}  // namespace lockstep
