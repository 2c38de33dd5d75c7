#include "config/fields.h"

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep {

namespace {

template <class... Ts>
struct Overload : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overload(Ts...) -> Overload<Ts...>;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Adds a point where needed, so that TOML reads the number as a float again.
std::string number(double value) {
  std::string text = fmt::format("{}", value);
  bool integral = text.find_first_not_of("-0123456789") == std::string::npos;
  return integral ? text + ".0" : text;
}

}  // namespace

std::string expectation(const FieldRef& value, const Rule& rule) {
  if (auto names = std::get_if<OneOf>(&rule)) {
    bool list = std::holds_alternative<std::vector<std::string>*>(value);
    return (list ? "a list of some of " : "one of ") + join(names->names, ", ");
  }
  std::string type = std::visit(
      Overload{[](bool*) { return "true or false"; }, [](int64_t*) { return "a whole number"; },
               [](double*) { return "a number"; }, [](std::string*) { return "a string"; },
               [](std::vector<std::string>*) { return "a list of strings"; },
               [](std::vector<double>*) { return "a list of numbers"; }},
      value);
  return std::visit(
      Overload{[&](const Above& r) { return fmt::format("{} > {}", type, r.limit); },
               [&](const AtLeast& r) { return fmt::format("{} >= {}", type, r.limit); },
               [&](const Between& r) {
                 return fmt::format("{} from {} to below {}", type, r.low, r.high);
               },
               [&](const auto&) { return type; }},
      rule);
}

std::string toml_text(const FieldRef& value) {
  return std::visit(
      Overload{[](bool* v) { return std::string(*v ? "true" : "false"); },
               [](int64_t* v) { return std::to_string(*v); }, [](double* v) { return number(*v); },
               [](std::string* v) { return quoted(*v); },
               [](std::vector<std::string>* v) {
                 std::vector<std::string> parts;
                 for (const std::string& s : *v) parts.push_back(quoted(s));
                 return "[" + join(parts, ", ") + "]";
               },
               [](std::vector<double>* v) {
                 std::vector<std::string> parts;
                 for (double x : *v) parts.push_back(number(x));
                 return "[" + join(parts, ", ") + "]";
               }},
      value);
}

void TomlWriter::begin_section(const std::string& key, std::string_view help) {
  text_ += fmt::format("{}[{}]  # {}\n", text_.empty() ? "" : "\n", key, help);
}

void TomlWriter::field(const std::string& key, FieldRef value, const Rule& rule,
                       std::string_view help) {
  std::string name = key.substr(key.rfind('.') + 1);
  text_ += fmt::format("{} = {}  # {}\n", name, toml_text(value), help);
}

void HelpWriter::begin_section(const std::string& key, std::string_view help) {
  text_ += fmt::format("{}[{}]  {}\n", text_.empty() ? "" : "\n", key, help);
}

void HelpWriter::field(const std::string& key, FieldRef value, const Rule& rule,
                       std::string_view help) {
  text_ += fmt::format("  {:<34} {:<14} {} ({})\n", key, toml_text(value), help,
                       expectation(value, rule));
}

void InputPaths::field(const std::string& key, FieldRef value, const Rule& rule, std::string_view) {
  if (!std::holds_alternative<InputPath>(rule)) return;
  const std::string& path = *std::get<std::string*>(value);
  if (!path.empty()) entries_.push_back({key, path});
}

}  // namespace lockstep
