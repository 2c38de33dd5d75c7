// Puts spans of ranks on a timeline.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "report/timeline/timeline_parts.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// One rank's part in an operation that several ranks take part in.
struct Meeting {
  TracePlace place;
  double begin = 0;
};
// Keyed by step, name, and how often that name came before in the step.
using Meetings = std::map<std::tuple<int64_t, std::string, int>, std::vector<Meeting>>;

// Arrows are for people: more of them than this hide the slices.
constexpr std::size_t kMostFlows = 20'000;

class RankRows {
 public:
  RankRows(TimelineContext& context, const RankSpans& rank, Meetings& meetings)
      : context_(context), rank_(rank), meetings_(meetings) {}

  void add() {
    for (const Span& span : rank_.spans) {
      if (context_.wants(span.step)) add(span);
    }
    if (phases_end_ > phases_begin_) {
      context_.exact[rank_.rank].push_back({phases_begin_, phases_end_});
    }
    name_more("phases", kPhasesThread, phases_);
    name_more("background", kBackgroundThread, background_);
    name_more("exchanges", kExchangeThread, exchange_);
  }

 private:
  void add(const Span& span) {
    // Converts to rank 0's clock.
    const double begin = span.begin - rank_.clock_offset, end = begin + span.length;
    const std::string& name = rank_.names[static_cast<std::size_t>(span.name)];
    TracePlace place{process_of_rank(rank_.rank), 0};
    switch (span.row) {
      case SpanRow::kPhases:
        phases_begin_ = std::min(phases_begin_, begin);
        phases_end_ = std::max(phases_end_, end);
        place.thread = row_of(kPhasesThread, phases_.place(begin, end));
        break;
      case SpanRow::kBackground:
        place.thread = row_of(kBackgroundThread, background_.place(begin, end));
        break;
      case SpanRow::kExchange:
        place.thread = row_of(kExchangeThread, exchange_.place(begin, end));
        break;
    }
    Json args = {{"step", span.step}};
    if (span.bytes > 0) args["bytes"] = span.bytes;
    context_.events.slice(place, name, begin, end, args);
    if (span.row != SpanRow::kExchange) return;
    const int before = seen_[{span.step, span.name}]++;
    meetings_[{span.step, name, before}].push_back({place, begin});
  }

  // Slices that overlap without nesting get rows of their own, below the first.
  static int row_of(int thread, std::size_t lane) {
    return lane == 0 ? thread : 100 * thread + static_cast<int>(lane);
  }
  void name_more(const char* name, int thread, const TraceLanes& lanes) {
    for (std::size_t lane = 1; lane < lanes.used(); ++lane) {
      const int row = row_of(thread, lane), process = process_of_rank(rank_.rank);
      if (!context_.further_rows.insert({process, row}).second) continue;
      context_.events.name_thread({process, row}, fmt::format("{} ({})", name, lane + 1), row);
    }
  }

  TimelineContext& context_;
  const RankSpans& rank_;
  Meetings& meetings_;
  TraceLanes phases_, background_, exchange_;
  double phases_begin_ = std::numeric_limits<double>::max(), phases_end_ = 0;
  std::map<std::pair<int64_t, int32_t>, int> seen_;
};

}  // namespace

bool TimelineContext::has_spans(int64_t step, double begin) const {
  constexpr double kAbout = 5;  // seconds; a repeated step of a later attempt began later
  return std::any_of(spans.begin(), spans.end(), [&](const SpanFile& file) {
    if (step < file.first_step || step > file.last_step || file.ranks.empty()) return false;
    const RankSpans& first = file.ranks.front();
    if (first.spans.empty()) return false;
    const Span &oldest = first.spans.front(), &newest = first.spans.back();
    return begin > oldest.begin - kAbout && begin < newest.begin + newest.length + kAbout;
  });
}

void add_spans(TimelineContext& context) {
  for (const SpanFile& file : context.spans) {
    Meetings meetings;
    double uncertainty = 0;
    for (const RankSpans& rank : file.ranks) {
      uncertainty = std::max(uncertainty, rank.clock_uncertainty);
      if (!context.options.ranks.has(rank.rank)) continue;
      context.ranks.insert(rank.rank);
      RankRows(context, rank, meetings).add();
    }
    std::size_t flows = 0;
    for (auto& [key, points] : meetings) {
      if (points.size() < 2 || ++flows > kMostFlows) continue;
      std::sort(points.begin(), points.end(),
                [](const Meeting& a, const Meeting& b) { return a.begin < b.begin; });
      std::vector<std::pair<TracePlace, double>> arrow;
      for (const Meeting& point : points) arrow.emplace_back(point.place, point.begin);
      context.events.flow(std::get<1>(key), arrow);
    }
    context.notes.push_back(fmt::format(
        "Steps {} to {} are exact, span by span{}.", file.first_step, file.last_step,
        uncertainty > 0 ? fmt::format("; clocks of the ranks agree to {:.2g} ms", uncertainty * 1e3)
                        : ""));
    if (flows > kMostFlows) {
      context.notes.push_back(
          fmt::format("Arrows between ranks: the first {} of {} operations.", kMostFlows, flows));
    }
  }
}

}  // namespace lockstep
