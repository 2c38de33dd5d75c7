// What every subcommand shares: its arguments and how CLI11's outcomes become ours.
#pragma once

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include "base/catalogue.h"
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

// A part of a command that has several: `lockstep cluster list`.
using CommandPart = int (*)(const Arguments&);

// Runs the part that the first argument names with the others; without one, or asked for help,
// lists the parts. Returns the exit code. ConfigError for a name that is none.
inline int run_part(const std::string& command, const Catalogue<CommandPart>& parts,
                    const Arguments& arguments) {
  bool help = arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h";
  if (!help) return parts.get(arguments[0])({arguments.begin() + 1, arguments.end()});
  fmt::print("usage: lockstep {0} PART ...      lockstep {0} PART --help explains one\n", command);
  std::size_t width = 0;
  for (const auto& part : parts.items()) width = std::max(width, part.name.size());
  for (const auto& part : parts.items()) {
    fmt::print("  {:<{}} {}\n", part.name, width, part.help);
  }
  return arguments.empty() ? kExitConfig : kExitOk;
}

}  // namespace lockstep
