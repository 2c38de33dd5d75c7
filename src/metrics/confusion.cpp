#include "metrics/confusion.h"

#include <algorithm>

namespace lockstep {

ClassScore class_score(const Confusion& confusion, int64_t label) {
  int64_t taken = 0;
  ClassScore out;
  for (int64_t other = 0; other < confusion.size(); ++other) {
    out.items += confusion.at(label, other);
    taken += confusion.at(other, label);
  }
  const auto right = static_cast<double>(confusion.at(label, label));
  if (out.items > 0) out.recall = right / static_cast<double>(out.items);
  if (taken > 0) out.precision = right / static_cast<double>(taken);
  if (out.items + taken > 0) out.f1 = 2 * right / static_cast<double>(out.items + taken);
  return out;
}

std::vector<Mistake> frequent_mistakes(const Confusion& confusion, int64_t most) {
  std::vector<Mistake> out;
  for (int64_t label = 0; label < confusion.size(); ++label) {
    for (int64_t other = 0; other < confusion.size(); ++other) {
      const int64_t items = confusion.at(label, other);
      if (label != other && items > 0) out.push_back({label, other, items});
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Mistake& a, const Mistake& b) { return a.items > b.items; });
  if (std::ssize(out) > most) out.resize(static_cast<std::size_t>(most));
  return out;
}

}  // namespace lockstep
