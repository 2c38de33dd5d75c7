#include "data/labelled/text_labels.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr std::size_t kListed = 10;  // classes listed in a message

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool all_whole(const std::vector<std::string>& names) {
  return std::all_of(names.begin(), names.end(),
                     [](const auto& name) { return parse<int64_t>(name).has_value(); });
}

std::string listed(const std::vector<std::string>& classes) {
  std::vector<std::string> shown(classes.begin(),
                                 classes.begin() + std::min(kListed, classes.size()));
  if (shown.size() < classes.size()) shown.emplace_back("...");
  return join(shown, ", ");
}

}  // namespace

ClassNumbers::ClassNumbers(std::vector<std::string> given)
    : learning_(given.empty()), classes_(std::move(given)) {
  by_number_ = !learning_ && !all_whole(classes_);
  index();
}

void ClassNumbers::index() {
  numbers_.clear();
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    if (!numbers_.emplace(classes_[i], static_cast<int32_t>(i)).second) {
      throw ConfigError("--classes: \"{}\" stands there twice", classes_[i]);
    }
  }
}

std::optional<int32_t> ClassNumbers::find(const std::string& label) const {
  auto found = numbers_.find(label);
  if (found != numbers_.end()) return found->second;
  const std::optional<int32_t> number = by_number_ ? parse<int32_t>(label) : std::nullopt;
  const bool fits = number && *number >= 0 && *number < std::ssize(classes_);
  return fits ? number : std::nullopt;
}

int32_t ClassNumbers::of(const std::string& label, const std::string& place) {
  if (const std::optional<int32_t> number = find(label)) return *number;
  if (learning_) {
    if (trim(label).empty()) throw DataError("{}: an empty label", place);
    numbers_.emplace(label, static_cast<int32_t>(classes_.size()));
    classes_.push_back(label);
    return static_cast<int32_t>(classes_.size()) - 1;
  }
  DataError error("{}: label \"{}\" is none of the {} classes{} ({})", place, label,
                  classes_.size(), did_you_mean(label, classes_), listed(classes_));
  if (by_number_ && parse<int32_t>(label)) {
    error.set_cause("numbers of the classes that were named count from 0");
  }
  throw error;
}

std::vector<int32_t> ClassNumbers::settle() {
  std::vector<int32_t> order(classes_.size());
  std::iota(order.begin(), order.end(), 0);
  if (learning_) {
    const bool whole = all_whole(classes_);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      const std::string &left = classes_[a], &right = classes_[b];
      return whole ? *parse<int64_t>(left) < *parse<int64_t>(right) : left < right;
    });
  }
  std::vector<std::string> sorted;
  std::vector<int32_t> numbers(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.push_back(classes_[order[i]]);
    numbers[order[i]] = static_cast<int32_t>(i);
  }
  classes_ = std::move(sorted);
  learning_ = false;
  index();
  return numbers;
}

float parse_value(const std::string& label, const std::string& place) {
  const std::optional<double> value = parse<double>(trim(label));
  if (value && std::isfinite(static_cast<float>(*value))) return static_cast<float>(*value);
  throw DataError("{}: label \"{}\": expected a number", place, label);
}

bool is_no_label(const std::string& label) { return label.empty() || label == "-1"; }

}  // namespace lockstep
