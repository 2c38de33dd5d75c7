// Lists the subcommands by name, as `lockstep --help` prints them.
#pragma once

#include "base/catalogue.h"
#include "commands/shared/command_line.h"

namespace lockstep {

using Command = int (*)(const Arguments&);  // returns the exit code, throws Error
const Catalogue<Command>& commands();

}  // namespace lockstep
