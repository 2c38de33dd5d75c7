// A configuration that is being written for somebody to read: sections and keys in the order in
// which they are first set, with the reason for a value as a comment above it.
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
  // A paragraph above the first section; one that begins with two spaces is not wrapped.
  void say(std::string paragraph) { head_.push_back(std::move(paragraph)); }

  // "model.d_model". A `why` is for this key and those that follow in its section without one.
  // REQUIRES that the key was not set.
  void set(const std::string& key, RecipeValue value, std::string why = "");

  // Nothing: it was not set.
  std::optional<RecipeValue> find(const std::string& key) const;
  // REQUIRES that it was set as a T.
  template <class T>
  T get(const std::string& key) const {
    return std::get<T>(find(key).value());
  }
  const std::string& why(const std::string& key) const;  // REQUIRES that it was set

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

// Lines of at most 100 columns, each behind "# ".
std::string wrapped_comment(const std::string& paragraph);

}  // namespace lockstep
