// Configurations that ship with the program: the folder `configs` of the source tree that it was
// built in, of the Python package that it is installed with, or beside its copy on a host.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"

namespace lockstep {

// That folder: `configs` in the nearest folder above the program that has one with recipes; nothing
// where the program stands alone.
std::optional<fs::path> recipe_folder();

// The file that `name` means: a path from the current folder, else a recipe as
// "configs/translation/quickstart.toml" or "translation/quickstart", of the current folder's
// configs or of recipe_folder(). Nothing when there is no such file.
std::optional<fs::path> find_recipe(const std::string& name);

}  // namespace lockstep
