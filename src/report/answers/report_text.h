// Renders a report as Markdown and as JSON. docs/report.md#reportjson describes the JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/answers/answers.h"

namespace lockstep {

struct Report {
  std::string title, run;  // run: the folder, as the user named it
  std::string made;        // when, in UTC
  std::vector<std::pair<std::string, std::string>> summary;  // "time" -> "1 h 02 m"
  Findings findings;
  std::vector<Answer> answers;  // the eleven questions in order, then the rest
};
inline constexpr std::size_t kQuestions = 11;

// Makes the report of the first folder, compared with the others. Throws ConfigError for a folder
// that holds no run, DataError for damaged files.
Report make_report(const std::vector<fs::path>& folders, const ReportOptions& options);

// Returns "3. Did it overfit?" or, after the eleven questions, "Samples".
std::string numbered(const Report& report, std::size_t answer);

// Links figures as figures/NAME.svg beside it.
std::string report_markdown(const Report& report);
nlohmann::ordered_json report_json(const Report& report);

}  // namespace lockstep
