// Finds the configurations that ship with the program. They are in the folder `configs` of the
// source tree it was built in, of the Python package it was installed with, or beside its copy on a
// host.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"

namespace lockstep {

// Returns the folder `configs` in the nearest folder above the program that has one with recipes.
// Returns nothing when there is none.
std::optional<fs::path> recipe_folder();

// Returns the file that `name` means. `name` is a path relative to the current folder, or a recipe
// such as "configs/translation/quickstart.toml" or "translation/quickstart", which is looked for in
// the current folder's configs and in recipe_folder(). Returns nothing when there is no such file.
std::optional<fs::path> find_recipe(const std::string& name);

}  // namespace lockstep
