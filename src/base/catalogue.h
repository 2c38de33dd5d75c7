// A named list of entries of one kind, in the order in which they were added. It serves as the
// table of contents of a folder of sources. An unknown name is reported like an unknown
// configuration key.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

template <typename Entry>
class Catalogue {
 public:
  struct Item {
    std::string name, help;
    Entry entry;
  };

  // `kind` is the word that errors use for one entry: "optimizer".
  explicit Catalogue(std::string kind) : kind_(std::move(kind)) {}

  void add(std::string name, Entry entry, std::string help) {
    items_.push_back({std::move(name), std::move(help), std::move(entry)});
  }

  const std::vector<Item>& items() const { return items_; }
  const std::string& kind() const { return kind_; }

  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Item& item : items_) out.push_back(item.name);
    return out;
  }

  const Entry* find(std::string_view name) const {
    for (const Item& item : items_) {
      if (item.name == name) return &item.entry;
    }
    return nullptr;
  }

  // Returns the message `no optimizer "adm"; did you mean adam? (adam, sgd)`.
  std::string unknown(std::string_view name) const {
    return fmt::format("no {} \"{}\"{} ({})", kind_, name, did_you_mean(name, names()),
                       join(names(), ", "));
  }

  const Entry& get(std::string_view name) const {
    if (const Entry* entry = find(name)) return *entry;
    throw ConfigError("{}", unknown(name));
  }

 private:
  std::string kind_;
  std::vector<Item> items_;
};

}  // namespace lockstep
