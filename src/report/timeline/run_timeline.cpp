#include "report/timeline/run_timeline.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/timeline/timeline_parts.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

// Returns the hosts of the ranks, from the newest source that knows them.
std::map<int, std::string> hosts_of(const TimelineContext& context) {
  std::map<int, std::string> out;
  for (const SpanFile& file : context.spans) {
    for (const RankSpans& rank : file.ranks) out[rank.rank] = rank.host;
  }
  const nlohmann::json& live = context.run.facts.live;
  if (live.is_object() && live.contains("ranks")) {
    for (const nlohmann::json& rank : live["ranks"]) {
      out.try_emplace(rank.value("rank", 0), rank.value("host", ""));
    }
  }
  return out;
}

void name_ranks(TimelineContext& context) {
  const std::map<int, std::string> hosts = hosts_of(context);
  for (int rank : context.ranks) {
    const auto host = hosts.find(rank);
    const int process = process_of_rank(rank);
    context.events.name_process(process,
                                host == hosts.end() || host->second.empty()
                                    ? fmt::format("rank {}", rank)
                                    : fmt::format("rank {} on {}", rank, host->second),
                                rank + 1);
    context.events.name_thread({process, kPhasesThread}, "phases", kPhasesThread);
    context.events.name_thread({process, kBackgroundThread}, "background", kBackgroundThread);
    context.events.name_thread({process, kExchangeThread}, "exchanges", kExchangeThread);
  }
}

// Returns the spans whose steps were asked for.
std::vector<SpanFile> spans_of(const fs::path& run, const TimelineOptions& options) {
  std::vector<SpanFile> out;
  for (const fs::path& path : span_files(run)) {
    SpanFile file = read_span_file(path);
    const bool outside = options.steps && (file.last_step < options.steps->first ||
                                           file.first_step > options.steps->second);
    if (!outside) out.push_back(std::move(file));
  }
  return out;
}

// Returns the run's first and last step, by all that it recorded; 0 and 0: none.
std::pair<int64_t, int64_t> steps_of(const Run& run) {
  std::pair<int64_t, int64_t> out{0, 0};
  const auto add = [&](int64_t first, int64_t last) {
    if (out.second == 0 || first < out.first) out.first = first;
    out.second = std::max(out.second, last);
  };
  const RunHistory& history = run.history;
  if (!history.steps.empty()) add(history.steps.front().step, history.steps.back().step);
  if (run.times) add(run.times->covered.front().first, run.times->covered.back().second);
  return out;
}

}  // namespace

Timeline make_timeline(const fs::path& run_folder, const TimelineOptions& options) {
  Run run{read_state_facts(run_folder), read_history(run_folder / "metrics.jsonl"), std::nullopt};
  run.times = read_run_times(run.facts);
  Timeline out;
  TraceEvents events;
  TimelineContext context{run, options, events, out.notes, spans_of(run_folder, options)};
  const auto [first, last] = steps_of(run);
  if (last == 0 && context.spans.empty()) {
    throw ConfigError("{}: has no step yet", run_folder.string());
  }
  if (options.steps && context.spans.empty() &&
      (options.steps->first > last || options.steps->second < first)) {
    throw ConfigError("--steps {}-{}: the run has steps {} to {}", options.steps->first,
                      options.steps->second, first, last);
  }
  add_spans(context);
  add_steps(context);
  add_run_events(context);
  name_ranks(context);
  if (context.ranks.empty() && !options.ranks.is_all()) {
    throw ConfigError("--ranks: the run recorded nothing of these ranks");
  }
  if (context.spans.empty()) {
    out.notes.emplace_back(
        "No step was recorded span by span; to have some: lockstep trace RUN --live 5, while it "
        "runs.");
  }
  const Json about = {{"made_by", "lockstep " LOCKSTEP_VERSION},
                      {"run", run_folder.lexically_normal().string()},
                      {"notes", out.notes}};
  out.text = events.text(about);
  out.events = events.count();
  return out;
}

}  // namespace lockstep
