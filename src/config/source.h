// Collects configuration values from a TOML file and then from `key=value` words of the command
// line. Values stay unparsed until a struct's describe() asks for them. All errors are reported
// together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/fields.h"

namespace lockstep {

// A value as it was written, for sections whose keys are not known in advance.
struct WrittenValue {
  std::string toml;  // as TOML: "'adam'", "0.1"
  std::string text;  // for people: strings without quotes
};
struct WrittenEntry {
  std::string key, where;  // key: below the section; where: "nmt.toml:3:6" or "command line"
  WrittenValue value;
  bool is_list = false;
  std::vector<WrittenValue> items;  // the elements of a list
};

class ConfigSource {
 public:
  // Reads a file or a recipe that ships with the program (config/recipe.h). Throws ConfigError when
  // there is no such file or its TOML does not parse (with file:line:column).
  static ConfigSource from_file(const std::filesystem::path& path);
  static ConfigSource from_text(std::string_view toml, const std::string& name);

  // Takes a word like "optimizer.lr=1e-3". The value is TOML, or a plain string if it does not
  // parse as TOML.
  void override_with(const std::string& word);
  // Sets a value from inside the program. `where` is what messages give as its origin, e.g. a flag.
  void set(const std::string& key, const std::string& value, const std::string& where);

  // Reads the values of config's fields below `section` ("" for top level), checks them and
  // collects errors. Keys that were read count as known.
  template <typename Config>
  void read(std::string_view section, Config& config) {
    Reader reader(*this);
    if (section.empty()) {
      config.describe(reader);
    } else {
      reader.section(section, config, "");
    }
  }

  // Returns the string at `key`, or `fallback`, and marks the key as known. It is meant for names
  // that select a struct.
  std::string name_at(const std::string& key, const std::string& fallback);

  bool has(const std::string& key) const { return entries_.contains(key); }
  // Returns whether `key` was set after `other` and somewhere else, as a word of the command line
  // after a file. Both are set.
  bool overrides(const std::string& key, const std::string& other) const;
  // Returns the place of a key ("nmt.toml:3:6"), or the name of the whole source if the key is
  // absent.
  std::string place_of(const std::string& key) const;

  // Returns all entries below `section` ("": all entries) in the order of the file, with those of
  // the command line last. They count as known.
  std::vector<WrittenEntry> take_below(const std::string& section);

  // Adds an error about a key with its place: "nmt.toml:3:6: optimizer.lr: <message>".
  void add_error(const std::string& key, const std::string& message);

  // Throws one ConfigError with all errors so far, including one for each key that nobody read.
  void finish();

 private:
  using Value = std::variant<bool, int64_t, double, std::string, std::vector<std::string>,
                             std::vector<double>>;
  struct Entry {
    Value value;
    std::string where;  // "nmt.toml:3:6" or "command line"
    WrittenEntry written = {};
    std::size_t order = 0;  // the order in which values were set
  };

  class Reader : public Fields {
   public:
    explicit Reader(ConfigSource& source) : source_(source) {}

   protected:
    void field(const std::string& key, FieldRef value, const Rule& rule,
               std::string_view help) override;

   private:
    ConfigSource& source_;
  };

  void add_toml(std::string_view toml, const std::string& name, bool is_file);
  bool assign(const Entry& entry, const FieldRef& target) const;

  std::map<std::string, Entry> entries_;
  std::size_t set_ = 0;
  std::vector<std::string> known_;
  std::vector<std::string> errors_;
  std::string name_;
};

}  // namespace lockstep
