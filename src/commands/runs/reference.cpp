#include "commands/runs/reference.h"

#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/text.h"
#include "config/recipe.h"
#include "dist/gradients/comm_hooks.h"
#include "optim/optimizers/catalogue.h"
#include "optim/schedules/schedules.h"
#include "tasks/catalogue.h"
#include "train/config/run_config.h"

namespace lockstep {

namespace {

template <typename Entry>
std::string table(const Catalogue<Entry>& catalogue) {
  std::string out;
  for (const auto& item : catalogue.items()) {
    out += fmt::format("  {:<16} {}\n", item.name, item.help);
  }
  return out;
}

// Returns what a recipe is for: the first line of its file.
std::string_view first_comment(std::string_view line) {
  if (!line.starts_with('#')) return "";
  line = trim(line.substr(1));
  return line.substr(0, line.find_last_not_of(":.,") + 1);
}

std::string recipes() {
  const std::optional<fs::path> folder = recipe_folder();
  if (!folder) return "";
  std::map<std::string, std::string> sorted;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(*folder)) {
    if (entry.path().extension() != ".toml") continue;
    const std::vector<std::string> lines = read_lines(entry.path());
    fs::path name = entry.path().lexically_relative(*folder);
    sorted[name.replace_extension().string()] = lines.empty() ? "" : first_comment(lines.front());
  }
  std::string out;
  for (const auto& [name, help] : sorted) out += fmt::format("  {:<40} {}\n", name, help);
  return out;
}

const Catalogue<std::string (*)()>& kinds() {
  static const Catalogue<std::string (*)()> catalogue = [] {
    Catalogue<std::string (*)()> c("kind of thing");
    c.add(
        "tasks", [] { return table(tasks()); }, "what can be trained (task.name)");
    c.add(
        "optimizers", [] { return table(optimizers()); }, "optimizer.name");
    c.add(
        "schedules", [] { return table(schedules()); }, "schedule.name");
    c.add(
        "comm-hooks", [] { return table(comm_hooks()); }, "comm.hook");
    c.add("recipes", recipes, "configurations that ship with the program: train NAME");
    return c;
  }();
  return catalogue;
}

}  // namespace

int list(const Arguments& arguments) {
  std::string kind;
  CommandLine app("Lists what there is of one kind.", "lockstep list");
  app.add_option("kind", kind, fmt::format("{}", fmt::join(kinds().names(), ", ")));
  if (!app.parse(arguments)) return kExitOk;
  fmt::print("{}", kind.empty() ? table(kinds()) : kinds().get(kind)());
  return kExitOk;
}

int explain(const Arguments& arguments) {
  std::string section;
  std::vector<std::string> words;
  CommandLine app("Explains the keys of a configuration: default, meaning, what is allowed.",
                  "lockstep explain");
  app.add_option("section", section, "only this section, as optimizer; key=value words choose");
  app.add_option("words", words, "task.name=... or optimizer.name=... to explain another one");
  if (!app.parse(arguments)) return kExitOk;
  ConfigSource source = ConfigSource::from_text("", "default");
  for (const std::string& word : words) source.override_with(word);
  RunConfig config = read_run_config(std::move(source));
  HelpWriter writer;
  config.describe(writer);
  std::vector<std::string> names;
  bool printed = false, inside = false;
  for (const std::string& line : split(writer.text(), '\n')) {
    if (line.starts_with("[")) {
      names.push_back(line.substr(1, line.find(']') - 1));
      const std::string& name = names.back();  // includes its tables
      inside = section.empty() || name == section || name.starts_with(section + ".");
    }
    if (!inside) continue;
    fmt::print("{}\n", line);
    printed = true;
  }
  if (!printed) {
    throw ConfigError("no section \"{}\"{} ({})", section, did_you_mean(section, names),
                      join(names, ", "));
  }
  return kExitOk;
}

}  // namespace lockstep
