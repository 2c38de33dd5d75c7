// Parses the words after a command's name: which options there are, which values they take, and
// where the values go. CLI11 does the work, behind functions without templates: its own templates
// cost a third of a second of compile time per option.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/catalogue.h"
#include "base/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lockstep {

using Arguments = std::vector<std::string>;  // the words after the command's name

// One option of a CommandLine, which owns it. Each call changes the option and returns it.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_(option) {}
  const CommandOption* operator->() const { return this; }

  CommandOption required() const;
  CommandOption positive() const;
  CommandOption non_negative() const;
  CommandOption range(int64_t least, int64_t most) const;
  CommandOption one_of(std::vector<std::string> words) const;
  // `rule` returns what is wrong with a word, or an empty text.
  CommandOption check(const std::function<std::string(const std::string&)>& rule) const;
  CommandOption expected(int words) const;
  CommandOption expected(int least, int most) const;
  CommandOption take_all() const;               // a repeated option collects all its values
  CommandOption delimiter(char between) const;  // separates several values in one word
  CommandOption needs(const CommandOption& other) const;
  CommandOption excludes(const CommandOption& other) const;
  CommandOption group(const std::string& heading) const;  // in the help
  CommandOption capture_default_str() const;              // the help shows the present value
  CommandOption default_str(const std::string& text) const;

 private:
  CLI::Option* option_;
};

class CommandLine {
 public:
  // `name` is what the user types: "lockstep prepare".
  CommandLine(const std::string& what_it_does, const std::string& name);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // `names` is "-s,--long", or a word without dashes for a positional argument. The parsed value
  // goes to `value`, which must outlive the parsing.
  CommandOption add_option(const std::string& names, std::string& value, const std::string& help);
  CommandOption add_option(const std::string& names, std::filesystem::path& value,
                           const std::string& help);
  CommandOption add_option(const std::string& names, int& value, const std::string& help);
  CommandOption add_option(const std::string& names, int64_t& value, const std::string& help);
  CommandOption add_option(const std::string& names, uint64_t& value, const std::string& help);
  CommandOption add_option(const std::string& names, double& value, const std::string& help);
  CommandOption add_option(const std::string& names, std::optional<std::string>& value,
                           const std::string& help);
  CommandOption add_option(const std::string& names, std::optional<int>& value,
                           const std::string& help);
  CommandOption add_option(const std::string& names, std::optional<int64_t>& value,
                           const std::string& help);
  CommandOption add_option(const std::string& names, std::optional<double>& value,
                           const std::string& help);
  CommandOption add_option(const std::string& names, std::vector<std::string>& values,
                           const std::string& help);
  CommandOption add_option(const std::string& names, std::vector<double>& values,
                           const std::string& help);
  CommandOption add_option(const std::string& names, std::vector<std::filesystem::path>& values,
                           const std::string& help);
  CommandOption add_flag(const std::string& names, bool& value, const std::string& help);
  // A flag that may have a value behind '=': "true" where it has none.
  CommandOption add_flag(const std::string& names, std::string& value, const std::string& help);

  // Adds one of several commands in one: `lockstep prepare text`. It lives as long as this.
  CommandLine* add_subcommand(const std::string& name, const std::string& what_it_does);
  void require_subcommand();
  bool parsed() const;  // for a subcommand: whether it was chosen

  CommandOption get_option(const std::string& name);
  bool has(const std::string& name) const;  // whether the user gave this option

  // Returns true to continue, false when help was asked for and printed. Throws ConfigError with
  // the parser's message, and how to get help, for anything wrong.
  bool parse(const Arguments& arguments);

 private:
  explicit CommandLine(CLI::App* part);

  std::unique_ptr<CLI::App> own_;
  CLI::App* app_;
  std::vector<std::unique_ptr<CommandLine>> parts_;
};

// A part, with its own options, of a command that has several: `lockstep cluster list`.
using CommandPart = int (*)(const Arguments&);

// Runs the part that the first argument names, with the other arguments; without one, or when asked
// for help, lists the parts. Returns the exit code. Throws ConfigError for an unknown name.
int run_part(const std::string& command, const Catalogue<CommandPart>& parts,
             const Arguments& arguments);

// Takes out the words with a '=' before any '/' or blank, which are settings; the others stay in
// `words`.
std::vector<std::string> take_settings(std::vector<std::string>& words);

}  // namespace lockstep
