// A configuration that is written for people to read. Sections and keys are in the order in which
// they are first set; the reason for a value is a comment above it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace lockstep {

using RecipeValue =
    std::variant<bool, int64_t, double, std::string, std::vector<std::string>, std::vector<double>>;

class Recipe {
 public:
  // Adds a paragraph above the first section. A paragraph that begins with two spaces is not
  // wrapped.
  void say(std::string paragraph) { head_.push_back(std::move(paragraph)); }

  // Sets a key such as "model.d_model". `why` also covers the following keys of the section that
  // have no reason of their own. REQUIRES: the key was not set before.
  void set(const std::string& key, RecipeValue value, std::string why = "");

  // Returns the value, or nothing if the key was not set.
  std::optional<RecipeValue> find(const std::string& key) const;
  // REQUIRES: the key was set to a T.
  template <class T>
  T get(const std::string& key) const {
    return std::get<T>(find(key).value());
  }
  const std::string& why(const std::string& key) const;  // REQUIRES: the key was set

  std::string to_toml() const;

 private:
  struct Entry {
    std::string key, why;
    RecipeValue value;
  };
  const Entry* entry(const std::string& key) const;

  std::vector<std::string> head_;
  std::vector<Entry> entries_;
};

// Wraps a paragraph to lines of at most 100 columns that begin with "# ".
std::string wrapped_comment(const std::string& paragraph);

}  // namespace lockstep
