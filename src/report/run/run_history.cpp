#include "report/run/run_history.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "report/run/read_json.h"

namespace lockstep {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double* field_of(StepRow& row, std::string_view key) {
  if (key == "time/step_seconds") return &row.seconds;
  if (key == "time/compute_seconds") return &row.compute;
  if (key == "time/wait_seconds") return &row.wait;
  if (key == "time/data_seconds") return &row.data;
  if (key == "train/loss") return &row.loss;
  if (key == "train/nll") return &row.nll;
  if (key == "train/learning_rate") return &row.lr;
  if (key == "train/gradient_norm") return &row.gradient_norm;
  if (key == "batch/targets") return &row.targets;
  if (key == "batch/sources") return &row.sources;
  if (key == "batch/items") return &row.items;
  if (key == "comm/sent_bytes") return &row.sent_bytes;
  if (key == "train/skipped_steps") return &row.skipped;
  if (key == "time") return &row.time;
  return nullptr;
}

// Takes the text between quotes that begins at `at`, and moves `at` behind it. Returns false when
// there is none, or one with escapes.
bool take_text(std::string_view line, std::size_t& at, std::string_view& out) {
  if (at >= line.size() || line[at] != '"') return false;
  const std::size_t end = line.find('"', at + 1);
  if (end == std::string_view::npos) return false;
  out = line.substr(at + 1, end - at - 1);
  at = end + 1;
  return out.find('\\') == std::string_view::npos;
}

class HistoryReader {
 public:
  void add_step(StepRow row) {
    // Other programs' lines may say less.
    if (row.compute == 0) row.compute = std::max(0.0, row.seconds - row.wait - row.data);
    if (std::isnan(row.nll)) row.nll = row.loss;
    if (out_.attempts.empty()) out_.attempts.push_back({.began = row.time - row.seconds});
    row.attempt = static_cast<int>(out_.attempts.size()) - 1;
    AttemptRow& attempt = out_.attempts.back();
    attempt.ended = std::max(attempt.ended, row.time);
    attempt.last_step = row.step;
    // Steps come in order; a line that repeats a step without a start replaces it.
    while (!out_.steps.empty() && out_.steps.back().step >= row.step) out_.steps.pop_back();
    out_.steps.push_back(row);
  }

  void add(const ReadJson& line) {
    const std::string event = line.value("event", "");
    if (event == "start" || event == "resume") return begin(line, event == "resume");
    if (event == "step") return add_slow_step(line);
    if (!out_.attempts.empty()) {
      out_.attempts.back().ended = std::max(out_.attempts.back().ended, number(line, "time"));
    }
    if (event == "evaluation") {
      add_evaluation(line);
    } else if (event == "checkpoint") {
      out_.checkpoints.push_back(
          {.step = whole(line, "step"),
           .time = number(line, "time"),
           .seconds = number(line, "seconds"),
           .write_seconds =
               number(line, line.contains("write_seconds") ? "write_seconds" : "seconds"),
           .bytes = number(line, "bytes"),
           .name = line.value("name", "")});
      out_.checkpoint_seconds += number(line, "seconds");
    } else if (event == "meeting") {
      out_.meeting_seconds += number(line, "time/wait_seconds");
      if (!out_.steps.empty()) {
        out_.steps.back().meeting_seconds += number(line, "time/wait_seconds");
      }
    } else if (event == "host") {
      out_.hosts.add(line);
    } else if (event == "slow_rank") {
      out_.slow_ranks.push_back({.step = whole(line, "step"),
                                 .time = number(line, "time"),
                                 .rank = line.value("rank", 0),
                                 .host = line.value("host", ""),
                                 .guess = line.value("guess", ""),
                                 .factor = number(line, "factor")});
    } else if (event == "guard") {
      out_.interventions.push_back({.step = whole(line, "step"),
                                    .kind = line.value("kind", ""),
                                    .action = line.value("action", ""),
                                    .why = line.value("why", "")});
    } else if (event == "plan") {
      out_.plan = line;
    } else if (event == "end" && !out_.attempts.empty()) {
      out_.attempts.back().end = line.value("reason", "");
    }
  }

  RunHistory take() { return std::move(out_); }

 private:
  void begin(const ReadJson& line, bool resumed) {
    const int64_t first = whole(line, "first_step");
    out_.attempts.push_back({.began = number(line, "time"),
                             .ended = number(line, "time"),
                             .first_step = first,
                             .last_step = first - 1,
                             .resumed = resumed});
    out_.total_steps = whole(line, "total_steps");
    if (const auto size = line.find("step_size"); size != line.end() && size->is_object()) {
      out_.step_size =
          fmt::format("{} {}", with_commas(whole(*size, "step")), size->value("items", ""));
    }
    out_.device = word(line, "device");
    out_.device_clock = word(line, "phase_clock") == "device";
    while (!out_.steps.empty() && out_.steps.back().step >= first) {
      out_.repeated_steps += 1;
      out_.repeated_seconds += out_.steps.back().seconds;
      out_.steps.pop_back();
    }
    while (!out_.evaluations.empty() && out_.evaluations.back().step >= first) {
      out_.evaluations.pop_back();
    }
    while (!out_.interventions.empty() && out_.interventions.back().step >= first) {
      out_.interventions.pop_back();
    }
  }

  void add_slow_step(const ReadJson& line) {
    StepRow row;
    row.step = whole(line, "step");
    row.epoch = whole(line, "epoch");
    for (const auto& [key, value] : line.items()) {
      double* field = field_of(row, key);
      if (field != nullptr) *field = value.is_number() ? value.get<double>() : kNone;
    }
    add_step(row);
  }

  void add_evaluation(const ReadJson& line) {
    EvaluationRow row{.step = whole(line, "step"),
                      .time = number(line, "time"),
                      .seconds = number(line, "seconds"),
                      .metrics = {},
                      .improved = {}};
    constexpr std::string_view kPrefix = "eval/";
    for (const auto& [key, value] : line.items()) {
      if (key.starts_with(kPrefix) && value.is_number()) {
        row.metrics[key.substr(kPrefix.size())] = value.get<double>();
      }
    }
    if (auto improved = line.find("improved"); improved != line.end() && improved->is_array()) {
      for (const ReadJson& name : *improved) row.improved.push_back(name.get<std::string>());
    }
    out_.evaluation_seconds += row.seconds;
    while (!out_.evaluations.empty() && out_.evaluations.back().step >= row.step) {
      out_.evaluations.pop_back();
    }
    out_.evaluations.push_back(std::move(row));
  }

  RunHistory out_;
};

}  // namespace

StepRow::StepRow() : loss(kNone), nll(kNone), lr(kNone), gradient_norm(kNone) {}

bool scan_step(std::string_view line, StepRow& row) {
  constexpr std::string_view kBegin = R"({"event":"step",)";
  if (!line.starts_with(kBegin) || line.back() != '}') return false;
  std::size_t at = kBegin.size();
  while (true) {
    std::string_view key, text;
    if (!take_text(line, at, key) || at >= line.size() || line[at] != ':') return false;
    ++at;
    double value = kNone;
    if (line[at] == '"') {
      if (!take_text(line, at, text)) return false;
    } else if (line.substr(at, 4) == "null") {
      at += 4;
    } else {
      auto [end, error] = std::from_chars(line.data() + at, line.data() + line.size(), value);
      if (error != std::errc()) return false;
      at = static_cast<std::size_t>(end - line.data());
    }
    if (key == "step") {
      row.step = whole_of(value);
    } else if (key == "epoch") {
      row.epoch = whole_of(value);
    } else if (double* field = field_of(row, key)) {
      *field = value;
    }
    if (at >= line.size()) return false;
    if (line[at] == '}') return at + 1 == line.size();
    if (line[at] != ',') return false;
    ++at;
  }
}

RunHistory read_history(const fs::path& metrics) {
  if (!fs::exists(metrics) || fs::file_size(metrics) == 0) return {};
  HistoryReader reader;
  const MappedFile file(metrics);
  std::string_view rest(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  for (int64_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty()) continue;
    StepRow row;
    if (scan_step(line, row)) {
      reader.add_step(row);
      continue;
    }
    const ReadJson json = ReadJson::parse(line, nullptr, false);
    if (!json.is_object() && rest.empty()) break;  // the last line may be cut short
    try {
      reader.add(json);
    } catch (const ReadJson::exception& problem) {
      DataError error("{}:{}: is no line of metrics", metrics.string(), number);
      error.set_cause(problem.what());
      throw error;
    }
  }
  return reader.take();
}

}  // namespace lockstep
