// What every subcommand shares: its arguments and how CLI11's outcomes become ours.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "base/error.h"

namespace lockstep {

using Arguments = std::vector<std::string>;  // the words after the command's name

// Parses `arguments` into `app`. True: go on. False: help was asked for and printed.
// Throws ConfigError with the parser's message and the way to the help for anything wrong.
inline bool parse_arguments(CLI::App& app, const Arguments& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants them
  try {
    app.parse(reversed);
    return true;
  } catch (const CLI::CallForHelp& help) {
    app.exit(help);
    return false;
  } catch (const CLI::ParseError& error) {
    throw ConfigError("{}; see: {} --help", error.what(), app.get_name());
  }
}

}  // namespace lockstep
