// Each configuration struct has one function `describe(Fields&)`, from which reading, checking,
// help and saving are derived.
//
//   struct AdamConfig {
//     double lr = 2.0;
//     void describe(Fields& f) { f("lr", &lr, Above{0}, "peak learning rate"); }
//   };
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace lockstep {

// The rule that a value must satisfy.
struct Any {};
struct Above {
  double limit;  // value > limit
};
struct AtLeast {
  double limit;  // value >= limit
};
struct Between {
  double low, high;  // low <= value < high
};
struct OneOf {
  std::vector<std::string> names;
};
// The value is the path of a file or folder that the program reads; empty: none.
struct InputPath {};
using Rule = std::variant<Any, Above, AtLeast, Between, OneOf, InputPath>;

using FieldRef = std::variant<bool*, int64_t*, double*, std::string*, std::vector<std::string>*,
                              std::vector<double>*>;

// A visitor of configuration structs. Keys are dotted paths: the field "lr" of section("optimizer")
// has the key "optimizer.lr".
class Fields {
 public:
  virtual ~Fields() = default;

  void operator()(std::string_view key, FieldRef value, const Rule& rule, std::string_view help) {
    field(prefix_ + std::string(key), value, rule, help);
  }

  template <typename Config>
  void section(std::string_view name, Config& config, std::string_view help) {
    std::string outer = prefix_;
    prefix_ += std::string(name) + ".";
    begin_section(prefix_.substr(0, prefix_.size() - 1), help);
    config.describe(*this);
    prefix_ = outer;
  }

 protected:
  virtual void field(const std::string& key, FieldRef value, const Rule& rule,
                     std::string_view help) = 0;
  virtual void begin_section(const std::string& key, std::string_view help) {}

 private:
  std::string prefix_;
};

// Returns what the rule and the type ask for: "a number > 0", "one of fp32, bf16".
std::string expectation(const FieldRef& value, const Rule& rule);
// Returns the value as TOML writes it.
std::string toml_text(const FieldRef& value);

// Writes the current values of a struct as TOML. The help of each key becomes a comment.
class TomlWriter : public Fields {
 public:
  const std::string& text() const { return text_; }

 protected:
  void field(const std::string& key, FieldRef value, const Rule& rule,
             std::string_view help) override;
  void begin_section(const std::string& key, std::string_view help) override;

 private:
  std::string text_;
};

// Writes a reference: the key, default, help and allowed values of each field.
class HelpWriter : public Fields {
 public:
  const std::string& text() const { return text_; }

 protected:
  void field(const std::string& key, FieldRef value, const Rule& rule,
             std::string_view help) override;
  void begin_section(const std::string& key, std::string_view help) override;

 private:
  std::string text_;
};

// Collects the fields that are paths of inputs, where they are set.
class InputPaths : public Fields {
 public:
  struct Entry {
    std::string key, value;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 protected:
  void field(const std::string& key, FieldRef value, const Rule& rule,
             std::string_view help) override;

 private:
  std::vector<Entry> entries_;
};

}  // namespace lockstep
