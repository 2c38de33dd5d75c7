#include "recipe/recipe.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/fields.h"

namespace lockstep {

namespace {

constexpr std::size_t kColumns = 98;  // without "# "

std::string toml_of(RecipeValue value) {
  return std::visit([](auto& held) { return toml_text(FieldRef(&held)); }, value);
}

}  // namespace

std::string wrapped_comment(const std::string& paragraph) {
  if (paragraph.starts_with("  ")) return "# " + paragraph + "\n";
  std::string out, line;
  for (std::string_view word : split_words(paragraph)) {
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      out += "# " + line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + std::string(word);
  }
  return out + "# " + line + "\n";
}

void Recipe::set(const std::string& key, RecipeValue value, std::string why) {
  entries_.push_back({key, std::move(why), std::move(value)});
}

const Recipe::Entry* Recipe::entry(const std::string& key) const {
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& entry) { return entry.key == key; });
  return found == entries_.end() ? nullptr : &*found;
}

std::optional<RecipeValue> Recipe::find(const std::string& key) const {
  const Entry* found = entry(key);
  return found == nullptr ? std::nullopt : std::optional(found->value);
}

const std::string& Recipe::why(const std::string& key) const { return entry(key)->why; }

std::string Recipe::to_toml() const {
  std::string head;
  for (const std::string& paragraph : head_) head += wrapped_comment(paragraph);
  std::vector<std::pair<std::string, std::string>> sections;  // name and lines of each
  for (const Entry& entry : entries_) {
    const std::size_t dot = entry.key.rfind('.');
    const std::string name = entry.key.substr(0, dot);
    auto section = std::find_if(sections.begin(), sections.end(),
                                [&](const auto& one) { return one.first == name; });
    if (section == sections.end()) section = sections.insert(section, {name, ""});
    if (!entry.why.empty()) section->second += wrapped_comment(entry.why);
    section->second += fmt::format("{} = {}\n", entry.key.substr(dot + 1), toml_of(entry.value));
  }
  std::string out = head;
  for (const auto& [name, lines] : sections) {
    out += fmt::format("{}[{}]\n{}", out.empty() ? "" : "\n", name, lines);
  }
  return out;
}

}  // namespace lockstep
