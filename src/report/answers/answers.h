// Defines the answers that a report gives, as values: what was found, the evidence, and what was
// not measured. report/answers/report_page.h renders them. There is one file per group of
// questions.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "report/draw/plot.h"
#include "report/draw/text_table.h"
#include "report/run/run.h"

namespace lockstep {

// What only the reader of the report knows.
struct ReportOptions {
  double price_per_hour = 0;         // of one host; 0: not given
  double watts = 0;                  // of one host
  double peak_tflops = 0;            // of all ranks together, in the run's precision
  double link_bytes_per_second = 0;  // of a host; 0: not given
  double measured_link = 0;          // the slowest, by lockstep doctor; 0: not given
};

// One horizontal bar per row: where time went, or what a file consists of.
struct BarRow {
  std::string name, value, note;
  double begin = 0, length = 0;  // in the same unit; a nonzero begin makes a waterfall chart
};

struct NotMeasured {
  std::string what, why, how;  // how: to measure it next time
};

// What programs should know about the run. Ids are in docs/report.md#reportjson.
struct Finding {
  std::string id;
  std::string text;
};

struct Answer {
  std::string id;        // "duration"
  std::string question;  // "How long did it take, and where did the time go?"
  std::string verdict;   // the answer in a sentence or two
  std::vector<std::string> evidence;
  std::vector<BarRow> bars;
  std::vector<TextTable> tables;
  std::vector<Figure> figures;
  std::vector<std::string> code;  // lines to be shown verbatim
  std::vector<NotMeasured> not_measured;
  std::string method;  // how the answer was found, with sources
  nlohmann::ordered_json facts = nlohmann::ordered_json::object();  // the numbers
};

using Findings = std::vector<Finding>;

// Questions 1 and 10 (answers_time.cpp).
Answer answer_duration(const Run& run, Findings& findings);
Answer answer_step_time(const Run& run, Findings& findings);
// Questions 2, 3 (answers_learning.cpp) and 6 (answers_rate.cpp).
Answer answer_trained(const Run& run, Findings& findings);
Answer answer_overfitting(const Run& run, Findings& findings);
Answer answer_learning_rate(const Run& run);
// Questions 4, 5 (answers_machines.cpp) and 11 (answers_traffic.cpp).
Answer answer_processors(const Run& run, const ReportOptions& options, Findings& findings);
Answer answer_network(const Run& run, const ReportOptions& options, Findings& findings);
Answer answer_traffic(const Run& run, const ReportOptions& options);
// Questions 7, 8 and 9 (answers_files.cpp).
Answer answer_data(const Run& run);
Answer answer_checkpoint_files(const Run& run);
Answer answer_checkpoint_size(const Run& run);
// Beyond the questions (answers_failures.cpp, answers_repeat.cpp).
Answer answer_failures(const Run& run, Findings& findings);
Answer answer_cost(const Run& run, const ReportOptions& options);
Answer answer_samples(const Run& run);
Answer answer_comparison(const std::vector<fs::path>& folders);  // the first is the report's
Answer answer_repeat(const Run& run);

// Shared by the answers.
struct RankLive {
  int rank = 0;
  std::string host;
  double step = 0, compute = 0, wait = 0, data = 0;  // seconds per step
  double cores = 0, machine_cores = 0, machine_share = 0, memory_bytes = 0;
  double in_bytes = 0, out_bytes = 0, link_bytes = 0, retransmits = 0;  // per second
  std::string interface;
};
std::vector<RankLive> ranks_of(const RunFacts& facts);  // that took steps; empty: not known
// Return means of neighbours, at most 400 points, for a plot.
PlotSeries series_of(const std::string& name, const RunHistory& history, double StepRow::*field,
                     double scale = 1);
PlotSeries series_of(const std::string& name, const RunHistory& history,
                     const std::function<double(const StepRow&)>& value);

}  // namespace lockstep
