// Lists the subcommands by name, as `lockstep --help` prints them.
#pragma once

#include <functional>

#include "base/catalogue.h"
#include "commands/shared/command_line.h"

namespace lockstep {

// Takes the words after the command's name; returns the exit code, throws Error.
using Command = std::function<int(const Arguments&)>;
const Catalogue<Command>& commands();

}  // namespace lockstep
