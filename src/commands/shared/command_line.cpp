#include "commands/shared/command_line.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

namespace lockstep {

CommandOption CommandOption::required() const { return CommandOption(option_->required()); }
CommandOption CommandOption::positive() const {
  return CommandOption(option_->check(CLI::PositiveNumber));
}
CommandOption CommandOption::non_negative() const {
  return CommandOption(option_->check(CLI::NonNegativeNumber));
}
CommandOption CommandOption::range(int64_t least, int64_t most) const {
  return CommandOption(option_->check(CLI::Range(least, most)));
}
CommandOption CommandOption::one_of(std::vector<std::string> words) const {
  return CommandOption(option_->check(CLI::IsMember(std::move(words))));
}
CommandOption CommandOption::check(
    const std::function<std::string(const std::string&)>& rule) const {
  return CommandOption(option_->check(rule));
}
CommandOption CommandOption::expected(int words) const {
  return CommandOption(option_->expected(words));
}
CommandOption CommandOption::expected(int least, int most) const {
  return CommandOption(option_->expected(least, most));
}
CommandOption CommandOption::take_all() const { return CommandOption(option_->take_all()); }
CommandOption CommandOption::delimiter(char between) const {
  return CommandOption(option_->delimiter(between));
}
CommandOption CommandOption::needs(const CommandOption& other) const {
  return CommandOption(option_->needs(other.option_));
}
CommandOption CommandOption::excludes(const CommandOption& other) const {
  return CommandOption(option_->excludes(other.option_));
}
CommandOption CommandOption::group(const std::string& heading) const {
  return CommandOption(option_->group(heading));
}
CommandOption CommandOption::capture_default_str() const {
  return CommandOption(option_->capture_default_str());
}
CommandOption CommandOption::default_str(const std::string& text) const {
  return CommandOption(option_->default_str(text));
}

CommandLine::CommandLine(const std::string& what_it_does, const std::string& name)
    : own_(std::make_unique<CLI::App>(what_it_does, name)), app_(own_.get()) {}
CommandLine::CommandLine(CLI::App* part) : app_(part) {}
CommandLine::~CommandLine() = default;

CommandOption CommandLine::add_option(const std::string& names, std::string& value,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, value, help));
}
CommandOption CommandLine::add_option(const std::string& names, std::filesystem::path& value,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, value, help));
}
CommandOption CommandLine::add_option(const std::string& names, int& value,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, value, help));
}
CommandOption CommandLine::add_option(const std::string& names, int64_t& value,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, value, help));
}
CommandOption CommandLine::add_option(const std::string& names, uint64_t& value,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, value, help));
}
CommandOption CommandLine::add_option(const std::string& names, double& value,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, value, help));
}
CommandOption CommandLine::add_option(const std::string& names, std::optional<std::string>& value,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, value, help));
}
CommandOption CommandLine::add_option(const std::string& names, std::optional<int>& value,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, value, help));
}
CommandOption CommandLine::add_option(const std::string& names, std::optional<int64_t>& value,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, value, help));
}
CommandOption CommandLine::add_option(const std::string& names, std::optional<double>& value,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, value, help));
}
CommandOption CommandLine::add_option(const std::string& names, std::vector<std::string>& values,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, values, help));
}
CommandOption CommandLine::add_option(const std::string& names, std::vector<double>& values,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, values, help));
}
CommandOption CommandLine::add_option(const std::string& names,
                                      std::vector<std::filesystem::path>& values,
                                      const std::string& help) {
  return CommandOption(app_->add_option(names, values, help));
}
CommandOption CommandLine::add_flag(const std::string& names, bool& value,
                                    const std::string& help) {
  return CommandOption(app_->add_flag(names, value, help));
}
CommandOption CommandLine::add_flag(const std::string& names, std::string& value,
                                    const std::string& help) {
  return CommandOption(app_->add_flag(names, value, help));
}

CommandLine* CommandLine::add_subcommand(const std::string& name, const std::string& what_it_does) {
  parts_.emplace_back(new CommandLine(app_->add_subcommand(name, what_it_does)));
  return parts_.back().get();
}
void CommandLine::require_subcommand() { app_->require_subcommand(1); }
bool CommandLine::parsed() const { return app_->parsed(); }

CommandOption CommandLine::get_option(const std::string& name) {
  return CommandOption(app_->get_option(name));
}
bool CommandLine::has(const std::string& name) const { return app_->count(name) > 0; }

namespace {

// A positional word may not have an option's name: CLI11 2.4 and later refuse it.
void check_names(const CLI::App& app) {
  std::set<std::string> taken;
  for (const CLI::Option* option : app.get_options()) {
    std::set<std::string> own(option->get_lnames().begin(), option->get_lnames().end());
    if (option->get_positional()) own.insert(option->get_name(true));
    for (const std::string& name : own) {
      if (taken.insert(name).second) continue;
      throw std::logic_error(fmt::format("{}: two are named {}", app.get_name(), name));
    }
  }
}

}  // namespace

bool CommandLine::parse(const Arguments& arguments) {
  check_names(*app_);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11's order
  try {
    app_->parse(reversed);
    return true;
  } catch (const CLI::CallForHelp& help) {
    app_->exit(help);
    return false;
  } catch (const CLI::ParseError& error) {
    throw ConfigError("{}; see: {} --help", error.what(), app_->get_name());
  }
}

int run_part(const std::string& command, const Catalogue<CommandPart>& parts,
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

std::vector<std::string> take_settings(std::vector<std::string>& words) {
  auto is_setting = [](const std::string& word) {
    std::size_t equals = word.find('=');
    return equals != std::string::npos && word.find_first_of("/ ") > equals;
  };
  auto first = std::stable_partition(words.begin(), words.end(),
                                     [&](const std::string& w) { return !is_setting(w); });
  std::vector<std::string> settings(first, words.end());
  words.erase(first, words.end());
  return settings;
}

}  // namespace lockstep
