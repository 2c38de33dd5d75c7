#include "report/run/rank_filter.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

bool read_rank(std::string_view text, int& out) {
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc() && end == text.data() + text.size() && out >= 0;
}

}  // namespace

RankFilter::RankFilter(const std::string& text) {
  for (const std::string& word : split(text, ',')) {
    std::string_view range = trim(word);
    std::size_t dash = range.find('-');
    int first = 0, last = 0;
    bool good = read_rank(range.substr(0, dash), first);
    last = first;
    if (dash != std::string_view::npos) good = good && read_rank(range.substr(dash + 1), last);
    if (!good || last < first) {
      throw ConfigError("--ranks {}: expected ranks as 0,2-3; \"{}\" is none", text, word);
    }
    ranges_.emplace_back(first, last);
  }
}

bool RankFilter::has(int rank) const {
  return ranges_.empty() || std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
           return rank >= range.first && rank <= range.second;
         });
}

}  // namespace lockstep
