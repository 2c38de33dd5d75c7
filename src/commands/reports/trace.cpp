#include "commands/reports/trace.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "formats/span_file.h"
#include "report/live/span_request.h"
#include "report/timeline/run_timeline.h"

namespace lockstep {

namespace {

struct TraceArguments {
  std::string run, out, steps, ranks;
  int64_t live = 0;
  double wait = 0;
  bool json = false;
};

bool read_whole(std::string_view text, int64_t& out) {
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), out);
  return failed == std::errc() && end == text.data() + text.size() && out >= 0;
}

// Parses "100-120", or "100" for one step.
std::pair<int64_t, int64_t> read_steps(const std::string& text) {
  const std::size_t dash = std::min(text.find('-'), text.size());
  const std::string_view all = text, first = all.substr(0, dash);
  const std::string_view last = dash == all.size() ? first : all.substr(dash + 1);
  std::pair<int64_t, int64_t> out;
  if (!read_whole(first, out.first) || !read_whole(last, out.second) || out.second < out.first) {
    throw ConfigError("--steps {}: expected a first and a last step as 100-120", text);
  }
  return out;
}

std::pair<int64_t, int64_t> record(const TraceArguments& a) {
  SpanRequest request{.steps = a.live, .limit = a.wait};
  // It is called five times a second; where output is not redrawn, that would be too many lines.
  request.on_progress =
      [calls = 0, each = isatty(STDERR_FILENO) == 1 ? 5 : 50](const std::string& line) mutable {
        if (calls++ % each == 0) show_progress(line);
      };
  const fs::path file = request_spans(a.run, request);
  end_progress();
  const SpanFile spans = read_span_file(file);
  log_info("recorded steps {} to {}: {}", spans.first_step, spans.last_step, file.string());
  return {spans.first_step, spans.last_step};
}

}  // namespace

int trace(const Arguments& arguments) {
  TraceArguments a;
  CommandLine app(
      "One timeline over all ranks and hosts of a run, for ui.perfetto.dev and chrome://tracing:\n"
      "lockstep trace RUN, or RUN --live N for the next N steps of a run that trains now",
      "lockstep trace");
  app.add_option("run", a.run, "the run folder")->required();
  app.add_option("-o,--out", a.out,
                 "the file (default: RUN/trace/timeline.json); compressed where it ends in .gz");
  CommandOption steps = app.add_option("--steps", a.steps, "only these, in detail: 100-120");
  app.add_option("--ranks", a.ranks, "only these: 0,2-3");
  CommandOption live =
      app.add_option("--live", a.live, "have the run record its next N steps first, span by span")
          ->range(1, 1000)
          ->excludes(steps);
  app.add_option("--wait", a.wait, "for the steps of --live, seconds (default: by their length)")
      ->positive()
      ->needs(live);
  app.add_flag("--json", a.json, "the timeline to the output, no file");
  if (!app.parse(arguments)) return kExitOk;

  TimelineOptions options;
  if (!a.steps.empty()) {
    options.steps = read_steps(a.steps);
    options.most_events = 1'000'000;
  }
  if (!a.ranks.empty()) options.ranks = RankFilter(a.ranks);
  if (a.live > 0) options.steps = record(a);
  const Timeline timeline = make_timeline(a.run, options);
  if (a.json) {
    fmt::print("{}", timeline.text);
    return kExitOk;
  }
  const fs::path out =
      a.out.empty() ? fs::path(a.run) / "trace" / "timeline.json" : fs::path(a.out);
  write_trace(out, timeline.text);
  for (const std::string& note : timeline.notes) fmt::print("{}\n", note);
  log_info(
      "wrote {} ({} events); open it in ui.perfetto.dev, which keeps it on your machine, or "
      "chrome://tracing",
      out.string(), with_commas(static_cast<int64_t>(timeline.events)));
  return kExitOk;
}

}  // namespace lockstep
