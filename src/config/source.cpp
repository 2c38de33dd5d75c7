#include "config/source.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <functional>
#include <optional>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/recipe.h"

namespace lockstep {

namespace {

constexpr const char* kCommandLine = "command line";

using AnyValue =
    std::variant<bool, int64_t, double, std::string, std::vector<std::string>, std::vector<double>>;

std::string describe_value(const AnyValue& value) {
  if (auto v = std::get_if<bool>(&value)) return *v ? "true" : "false";
  if (auto v = std::get_if<int64_t>(&value)) return fmt::format("{}", *v);
  if (auto v = std::get_if<double>(&value)) return fmt::format("{}", *v);
  if (auto v = std::get_if<std::string>(&value)) return fmt::format("the string \"{}\"", *v);
  return "a list";
}

// Returns the value of a TOML node, or nothing for a date or a time.
std::optional<AnyValue> value_of(const toml::node& node) {
  if (auto v = node.value_exact<bool>()) return *v;
  if (auto v = node.value_exact<int64_t>()) return *v;
  if (auto v = node.value_exact<double>()) return *v;
  if (auto v = node.value_exact<std::string>()) return *v;
  const toml::array* array = node.as_array();
  if (array == nullptr) return std::nullopt;
  if (!array->empty() && array->front().is_number()) {
    std::vector<double> numbers;
    for (const toml::node& item : *array) {
      // A list that mixes numbers and strings is valid as neither kind of list.
      if (!item.is_number()) return std::vector<std::string>(array->size());
      numbers.push_back(*item.value<double>());
    }
    return numbers;
  }
  std::vector<std::string> list;
  for (const toml::node& item : *array) list.push_back(item.value<std::string>().value_or(""));
  return list;
}

// Writes numbers with as few digits as identify them: toml++ would write 0.1 with 17 digits.
WrittenValue written(const toml::node& node) {
  if (auto text = node.value_exact<std::string>()) return {toml_text(&*text), *text};
  std::string toml;
  if (auto number = node.value_exact<double>()) {
    toml = toml_text(&*number);
  } else if (const toml::array* array = node.as_array()) {
    std::vector<std::string> parts;
    for (const toml::node& item : *array) parts.push_back(written(item).toml);
    toml = "[" + join(parts, ", ") + "]";
  } else {
    std::ostringstream out;
    out << toml::toml_formatter(node);
    toml = out.str();
  }
  return {toml, toml};
}

WrittenEntry written_entry(const toml::node& node, const std::string& where) {
  WrittenEntry out{.key = "", .where = where, .value = written(node), .items = {}};
  const toml::array* array = node.as_array();
  out.is_list = array != nullptr;
  if (array == nullptr) return out;
  for (const toml::node& item : *array) out.items.push_back(written(item));
  return out;
}

bool satisfies(double value, const Rule& rule) {
  if (auto r = std::get_if<Above>(&rule)) return value > r->limit;
  if (auto r = std::get_if<AtLeast>(&rule)) return value >= r->limit;
  if (auto r = std::get_if<Between>(&rule)) return value >= r->low && value < r->high;
  return true;
}

bool satisfies(const FieldRef& target, const Rule& rule) {
  if (auto v = std::get_if<std::vector<double>*>(&target)) {
    return std::all_of((*v)->begin(), (*v)->end(), [&](double x) { return satisfies(x, rule); });
  }
  if (auto v = std::get_if<int64_t*>(&target)) return satisfies(static_cast<double>(**v), rule);
  if (auto v = std::get_if<double*>(&target)) return satisfies(**v, rule);
  auto allowed = std::get_if<OneOf>(&rule);
  if (allowed == nullptr) return true;
  auto is_allowed = [&](const std::string& name) {
    return std::find(allowed->names.begin(), allowed->names.end(), name) != allowed->names.end();
  };
  if (auto text = std::get_if<std::string*>(&target)) return is_allowed(**text);
  auto list = std::get_if<std::vector<std::string>*>(&target);
  return list == nullptr || std::all_of((*list)->begin(), (*list)->end(), is_allowed);
}

}  // namespace

ConfigSource ConfigSource::from_file(const std::filesystem::path& path) {
  const fs::path file = fs::exists(path) ? path : find_recipe(path.string()).value_or("");
  if (file.empty()) throw ConfigError("{}: no such configuration file", path.string());
  return from_text(read_file(file), file.string());
}

ConfigSource ConfigSource::from_text(std::string_view toml, const std::string& name) {
  ConfigSource source;
  source.name_ = name;
  source.add_toml(toml, name, true);
  return source;
}

void ConfigSource::add_toml(std::string_view text, const std::string& name, bool is_file) {
  toml::table table;
  try {
    table = toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    const toml::source_position& at = error.source().begin;
    throw ConfigError("{}:{}:{}: {}", name, at.line, at.column, error.description());
  }
  std::function<void(const std::string&, const toml::table&)> walk;
  walk = [&](const std::string& prefix, const toml::table& node) {
    for (const auto& [key, child] : node) {
      std::string full = prefix + std::string(key.str());
      if (const toml::table* inner = child.as_table()) {
        walk(full + ".", *inner);
        continue;
      }
      const toml::array* array = child.as_array();
      if (array != nullptr && array->is_array_of_tables()) {  // [[host]] gives host[0].name, ...
        for (std::size_t i = 0; i < array->size(); ++i) {
          walk(fmt::format("{}[{}].", full, i), *array->get_as<toml::table>(i));
        }
        continue;
      }
      const toml::source_position& at = child.source().begin;
      std::string where = is_file ? fmt::format("{}:{}:{}", name, at.line, at.column) : name;
      if (std::optional<Value> value = value_of(child)) {
        // toml++ sorts tables by name: the order of the file is taken from the positions.
        const std::size_t order =
            is_file ? at.line * 1000 + std::min<std::size_t>(at.column, 999) : 0;
        entries_[full] = {*value, where, written_entry(child, where), order};
        set_ = std::max(set_, order);
      } else {
        errors_.push_back(fmt::format("{}: {}: dates and times are not used", where, full));
      }
    }
  };
  walk("", table);
}

void ConfigSource::override_with(const std::string& word) {
  std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw ConfigError("command line: \"{}\": expected key=value, as in optimizer.lr=1e-3", word);
  }
  set(word.substr(0, equals), word.substr(equals + 1), kCommandLine);
}

void ConfigSource::set(const std::string& key, const std::string& value, const std::string& where) {
  ConfigSource parsed;
  try {
    parsed.add_toml("value = " + value, where, false);
  } catch (const ConfigError&) {
    parsed.entries_["value"] = {value, where};
  }
  auto found = parsed.entries_.find("value");
  entries_[key] = found == parsed.entries_.end() ? Entry{value, where} : found->second;
  WrittenEntry& entry = entries_[key].written;
  if (entry.value.toml.empty()) {  // value is a plain string
    std::string text = value;
    entry = {.key = "", .where = where, .value = {toml_text(&text), text}, .items = {}};
  }
  entries_[key].order = ++set_;
}

bool ConfigSource::overrides(const std::string& key, const std::string& other) const {
  const Entry& a = entries_.at(key);
  const Entry& b = entries_.at(other);
  auto source = [](const std::string& where) { return where.substr(0, where.find(':')); };
  return a.order > b.order && source(a.where) != source(b.where);
}

std::string ConfigSource::place_of(const std::string& key) const {
  auto found = entries_.find(key);
  return found == entries_.end() ? name_ : found->second.where;
}

std::vector<WrittenEntry> ConfigSource::take_below(const std::string& section) {
  const std::string prefix = section.empty() ? "" : section + ".";
  std::vector<std::pair<std::size_t, WrittenEntry>> found;
  for (const auto& [key, entry] : entries_) {
    if (!key.starts_with(prefix)) continue;
    known_.push_back(key);
    found.emplace_back(entry.order, entry.written).second.key = key.substr(prefix.size());
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<WrittenEntry> out;
  for (auto& [order, entry] : found) out.push_back(std::move(entry));
  return out;
}

bool ConfigSource::assign(const Entry& entry, const FieldRef& target) const {
  auto take = [&]<typename T>(T* out) {
    auto v = std::get_if<T>(&entry.value);
    if (v == nullptr) return false;
    *out = *v;
    return true;
  };
  if (auto out = std::get_if<std::vector<double>*>(&target)) {
    auto empty = std::get_if<std::vector<std::string>>(&entry.value);  // [] is untyped
    if (empty && empty->empty()) {
      (*out)->clear();
      return true;
    }
  }
  if (auto out = std::get_if<double*>(&target)) {
    if (auto whole = std::get_if<int64_t>(&entry.value)) {
      **out = static_cast<double>(*whole);
      return true;
    }
  }
  if (auto out = std::get_if<std::string*>(&target)) {  // e.g. texts.positive=1
    if (entry.where == kCommandLine && std::holds_alternative<int64_t>(entry.value)) {
      **out = entry.written.value.text;
      return true;
    }
  }
  if (auto out = std::get_if<int64_t*>(&target)) {
    auto number = std::get_if<double>(&entry.value);  // 1e6 means 1000000
    if (number && *number == static_cast<double>(static_cast<int64_t>(*number))) {
      **out = static_cast<int64_t>(*number);
      return true;
    }
  }
  return std::visit(take, target);
}

void ConfigSource::Reader::field(const std::string& key, FieldRef value, const Rule& rule,
                                 std::string_view) {
  source_.known_.push_back(key);
  auto found = source_.entries_.find(key);
  if (found == source_.entries_.end()) return;
  if (source_.assign(found->second, value) && satisfies(value, rule)) return;
  std::string got = describe_value(found->second.value);
  std::string hint;
  auto allowed = std::get_if<OneOf>(&rule);
  auto text = std::get_if<std::string>(&found->second.value);
  if (allowed && text) hint = did_you_mean(*text, allowed->names);
  auto list = std::get_if<std::vector<std::string>>(&found->second.value);
  if (allowed && list) {  // hint for the first name that is not allowed
    auto bad = std::find_if(list->begin(), list->end(), [&](const std::string& name) {
      return std::find(allowed->names.begin(), allowed->names.end(), name) == allowed->names.end();
    });
    if (bad != list->end()) {
      hint = fmt::format(" with \"{}\"{}", *bad, did_you_mean(*bad, allowed->names));
    }
  }
  source_.add_error(key, fmt::format("expected {}, got {}{}", expectation(value, rule), got, hint));
}

std::string ConfigSource::name_at(const std::string& key, const std::string& fallback) {
  known_.push_back(key);
  auto found = entries_.find(key);
  if (found == entries_.end()) return fallback;
  if (auto text = std::get_if<std::string>(&found->second.value)) return *text;
  add_error(key, "expected a name, got " + describe_value(found->second.value));
  return fallback;
}

void ConfigSource::add_error(const std::string& key, const std::string& message) {
  errors_.push_back(fmt::format("{}: {}: {}", place_of(key), key, message));
}

void ConfigSource::finish() {
  for (const auto& [key, entry] : entries_) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    errors_.push_back(
        fmt::format("{}: {}: unknown key{}", entry.where, key, did_you_mean(key, known_)));
  }
  if (errors_.empty()) return;
  throw ConfigError("{}", join(errors_, "\nerror: "));
}

}  // namespace lockstep
