#include "report/answers/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/date.h"
#include "base/text.h"
#include "report/draw/figure_text.h"
#include "report/run/analysis_steps.h"

namespace lockstep {

namespace {

using Json = nlohmann::ordered_json;

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.replace(at, 1, "\\|");
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string out = "|";
  for (const std::string& text : cells) out += " " + cell(text) + " |";
  return out + "\n";
}

std::string markdown_table(const TextTable& table) {
  std::string out = markdown_row(table.header) + "|";
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    out += i < table.alignment.size() && table.alignment[i] == 'r' ? " ---: |" : " --- |";
  }
  out += "\n";
  for (const auto& row : table.rows) out += markdown_row(row);
  return out + "\n";
}

void add_summary(const Run& run, Report& out) {
  const RunHistory& h = run.history;
  const StepDurations t = step_durations(h);
  auto add = [&](const char* name, const std::string& value) {
    out.summary.emplace_back(name, value);
  };
  const std::string network = run.facts.value("model.name");
  add("task", run.facts.value("task.name", "?") + (network.empty() ? "" : ", " + network));
  add("ranks", fmt::format("{} on {} host{}", run.facts.ranks(), run.facts.hosts(),
                           run.facts.hosts() == 1 ? "" : "s"));
  if (run.facts.weights) add("weights", with_commas(run.facts.weights->numbers));
  add("time", short_duration(h.wall_seconds()));
  add("steps", fmt::format("{} of {}", h.steps.empty() ? "0" : with_commas(h.steps.back().step),
                           with_commas(h.total_steps)));
  if (t.count > 0) add("step", milliseconds(t.median));
  for (const Answer& answer : out.answers) {
    if (answer.id != "trained" || !answer.facts.contains("metric")) continue;
    add("best", fmt::format("{} {:.4g}", answer.facts["metric"].get<std::string>(),
                            answer.facts["best"].get<double>()));
  }
}

}  // namespace

Report make_report(const std::vector<fs::path>& folders, const ReportOptions& options) {
  const fs::path& folder = folders.front();
  Run run{read_facts(folder), read_history(folder / "metrics.jsonl"), std::nullopt};
  run.times = read_run_times(run.facts);
  Report out;
  out.run = folder.string();
  const fs::path name = folder.lexically_normal();
  out.title = "Report on " + (name.has_filename() ? name : name.parent_path()).filename().string();
  out.made = utc_date(std::time(nullptr), "%Y-%m-%d %H:%M UTC");
  Findings& f = out.findings;
  out.answers.push_back(answer_duration(run, f));
  out.answers.push_back(answer_trained(run, f));
  out.answers.push_back(answer_overfitting(run, f));
  out.answers.push_back(answer_processors(run, options, f));
  out.answers.push_back(answer_network(run, options, f));
  out.answers.push_back(answer_learning_rate(run));
  out.answers.push_back(answer_data(run));
  out.answers.push_back(answer_checkpoint_files(run));
  out.answers.push_back(answer_checkpoint_size(run));
  out.answers.push_back(answer_step_time(run, f));
  out.answers.push_back(answer_traffic(run, options));
  out.answers.push_back(answer_failures(run, f));
  out.answers.push_back(answer_cost(run, options));
  out.answers.push_back(answer_samples(run));
  out.answers.push_back(answer_comparison(folders));
  out.answers.push_back(answer_repeat(run));
  add_summary(run, out);
  return out;
}

std::string numbered(const Report& report, std::size_t answer) {
  const std::string& question = report.answers[answer].question;
  return answer < kQuestions ? fmt::format("{}. {}", answer + 1, question) : question;
}

std::string report_markdown(const Report& report) {
  std::string out = fmt::format("# {}\n\n", report.title);
  for (const auto& [name, value] : report.summary) out += fmt::format("- {}: {}\n", name, value);
  out += fmt::format("- made: {}\n\n", report.made);
  if (!report.findings.empty()) {
    out += "## What stands out\n\n";
    for (const Finding& finding : report.findings) out += fmt::format("- {}\n", finding.text);
    out += "\n";
  }
  for (std::size_t i = 0; i < report.answers.size(); ++i) {
    const Answer& a = report.answers[i];
    out += fmt::format("## {}\n\n**{}**\n\n", numbered(report, i), a.verdict);
    for (const std::string& text : a.evidence) out += "- " + text + "\n";
    if (!a.evidence.empty()) out += "\n";
    if (!a.bars.empty()) {
      TextTable bars{{"part", "how much", "what"}, {}, "lrl"};
      for (const BarRow& bar : a.bars) bars.rows.push_back({bar.name, bar.value, bar.note});
      out += markdown_table(bars);
    }
    for (const TextTable& table : a.tables) out += markdown_table(table);
    for (const Figure& figure : a.figures) {
      out +=
          fmt::format("![{}](figures/{}.svg)\n\n{}\n\n", figure.title, figure.name, figure.caption);
    }
    if (!a.code.empty()) out += "```\n" + join(a.code, "\n") + "\n```\n\n";
    for (const NotMeasured& n : a.not_measured) {
      out += fmt::format("*Not measured:* {}: {}. To have it: {}.\n\n", n.what, n.why, n.how);
    }
    if (!a.method.empty()) out += fmt::format("*How it was found:* {}\n\n", a.method);
  }
  return out;
}

Json report_json(const Report& report) {
  Json summary = Json::object(), findings = Json::array(), answers = Json::array();
  for (const auto& [name, value] : report.summary) summary[name] = value;
  for (const Finding& f : report.findings) findings.push_back({{"id", f.id}, {"text", f.text}});
  for (std::size_t i = 0; i < report.answers.size(); ++i) {
    const Answer& a = report.answers[i];
    Json missing = Json::array();
    for (const NotMeasured& n : a.not_measured) {
      missing.push_back({{"what", n.what}, {"why", n.why}, {"how", n.how}});
    }
    Json one = {{"id", a.id},          {"question", a.question},
                {"answer", a.verdict}, {"evidence", a.evidence},
                {"facts", a.facts},    {"not_measured", missing}};
    if (i < kQuestions) one["number"] = i + 1;
    answers.push_back(std::move(one));
  }
  return {{"version", 1},       {"run", report.run},    {"made", report.made},
          {"summary", summary}, {"findings", findings}, {"answers", answers}};
}

}  // namespace lockstep
