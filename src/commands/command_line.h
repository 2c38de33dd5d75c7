// The words after a command's name: which options there are, what they must be and where their
// values go. CLI11 does the work behind functions without templates: its own cost a third of a
// second of compiling for each option.
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

// One option of a CommandLine, which owns it. Each call changes it and gives it back.
class CommandOption {
 public:
  explicit CommandOption(CLI::Option* option) : option_(option) {}
  const CommandOption* operator->() const { return this; }

  CommandOption required() const;
  CommandOption positive() const;
  CommandOption non_negative() const;
  CommandOption range(int64_t least, int64_t most) const;
  CommandOption one_of(std::vector<std::string> words) const;
  // What `rule` says is wrong with a word; nothing: it is right.
  CommandOption check(const std::function<std::string(const std::string&)>& rule) const;
  CommandOption expected(int words) const;
  CommandOption expected(int least, int most) const;
  CommandOption take_all() const;               // of an option that is repeated, not the last one
  CommandOption delimiter(char between) const;  // of several values in one word
  CommandOption needs(const CommandOption& other) const;
  CommandOption excludes(const CommandOption& other) const;
  CommandOption group(const std::string& heading) const;  // in the help
  CommandOption capture_default_str() const;              // the help says the value that is there
  CommandOption default_str(const std::string& text) const;

 private:
  CLI::Option* option_;
};

class CommandLine {
 public:
  // `name` as the user writes it: "lockstep prepare".
  CommandLine(const std::string& what_it_does, const std::string& name);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // `names`: "-s,--long", or a word without dashes for what stands without them. The value goes to
  // `value`, which must outlive the parsing.
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

  // One of several commands in one: `lockstep prepare text`. Lives as long as this.
  CommandLine* add_subcommand(const std::string& name, const std::string& what_it_does);
  void require_subcommand();
  bool parsed() const;  // of a subcommand: it was the one

  CommandOption get_option(const std::string& name);
  bool has(const std::string& name) const;  // the user gave this option

  // True: go on. False: help was asked for and printed. Throws ConfigError with the parser's
  // message and the way to the help for anything wrong.
  bool parse(const Arguments& arguments);

 private:
  explicit CommandLine(CLI::App* part);

  std::unique_ptr<CLI::App> own_;
  CLI::App* app_;
  std::vector<std::unique_ptr<CommandLine>> parts_;
};

// A part of a command that has several with options of their own: `lockstep cluster list`.
using CommandPart = int (*)(const Arguments&);

// Runs the part that the first argument names with the others; without one, or asked for help,
// lists the parts. Returns the exit code. ConfigError for a name that is none.
int run_part(const std::string& command, const Catalogue<CommandPart>& parts,
             const Arguments& arguments);

}  // namespace lockstep
