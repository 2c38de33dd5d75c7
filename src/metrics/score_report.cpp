#include "metrics/score_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "metrics/line_text.h"

namespace lockstep {

namespace {

// Formats like Python's repr(): the shortest digits that restore the number, with a decimal point.
std::string python_number(double value) {
  std::string out = fmt::format("{}", value);
  return out.find_first_of(".en") == std::string::npos ? out + ".0" : out;
}

std::string rounded_number(double value, int decimals) {
  return python_number(std::stod(fmt::format("{:.{}f}", value, decimals)));
}

std::string quoted(const std::string& text, bool ascii_only) {
  return nlohmann::json(text).dump(-1, ' ', ascii_only);
}

std::string confidence_text(const Confidence& confidence, int decimals) {
  return fmt::format("μ = {:.{}f} ± {:.{}f}", confidence.mean, decimals, confidence.half_width,
                     decimals);
}

// sacreBLEU prints no interval for a mean of 0.
bool shows_confidence(const ScoreResult& result) {
  return result.confidence && result.confidence->mean > 0;
}

// Pairs of key and JSON value, in order.
using Members = std::vector<std::pair<std::string, std::string>>;

Members members_of(const ScoreResult& result, const ScoreStyle& style) {
  Members out{{"name", quoted(result.name, false)},
              {"score", rounded_number(result.score, style.decimals)},
              {"signature", quoted(signature_text(result.signature), false)}};
  if (shows_confidence(result)) {
    const Confidence& c = *result.confidence;
    out.emplace_back("confidence_mean", rounded_number(c.mean, style.decimals));
    out.emplace_back("confidence_var", rounded_number(c.half_width, style.decimals));
    out.emplace_back("confidence", quoted(confidence_text(c, style.decimals), false));
  }
  if (!result.details.empty()) {
    out.emplace_back("verbose_score", quoted(result.details, false));
  }
  for (const SignaturePart& part : result.signature) {
    out.emplace_back(part.name, quoted(part.value, false));
  }
  return out;
}

// Writes each member after `margin` and the closing brace after `end`. With an empty margin
// everything is on one line.
std::string object_of(const Members& members, const std::string& margin, const std::string& end) {
  std::string out;
  for (const auto& [key, value] : members) {
    if (!out.empty()) out += margin.empty() ? ", " : ",";
    out += fmt::format("{}\"{}\": {}", margin, key, value);
  }
  return "{" + out + end + "}";
}

constexpr const char* kRed = "\x1b[31m";
constexpr const char* kPlain = "\x1b[0m";

std::size_t width_of(std::string text) {
  replace_all(text, kRed, "");
  replace_all(text, kPlain, "");
  return to_code_points(text).size();
}

std::string centred(const std::string& text, std::size_t width) {
  std::size_t blanks = width - width_of(text);
  return std::string(blanks / 2, ' ') + text + std::string(blanks - blanks / 2, ' ');
}

std::string to_the_right(const std::string& text, std::size_t width) {
  return std::string(width - width_of(text), ' ') + text;
}

std::string rule(const std::vector<std::size_t>& widths, const char* left, const char* fill,
                 const char* cross, const char* right) {
  std::string out = left;
  for (std::size_t c = 0; c < widths.size(); ++c) {
    if (c > 0) out += cross;
    for (std::size_t i = 0; i < widths[c] + 2; ++i) out += fill;
  }
  return out + right + "\n";
}

// A cell cells[row][column] may have several lines. Row 0 is the header.
std::string grid(const std::vector<std::vector<std::string>>& cells) {
  std::vector<std::size_t> widths(cells[0].size());
  for (std::size_t r = 0; r < cells.size(); ++r) {
    for (std::size_t c = 0; c < widths.size(); ++c) {
      for (const std::string& line : split(cells[r][c], '\n')) {
        widths[c] = std::max(widths[c], width_of(line) + (r == 0 ? 2 : 0));
      }
    }
  }
  std::string out = rule(widths, "╒", "═", "╤", "╕");
  for (std::size_t r = 0; r < cells.size(); ++r) {
    if (r > 0) {
      out += r == 1 ? rule(widths, "╞", "═", "╪", "╡") : rule(widths, "├", "─", "┼", "┤");
    }
    std::size_t height = 1;
    for (const std::string& cell : cells[r]) {
      height = std::max(height, split(cell, '\n').size());
    }
    for (std::size_t line = 0; line < height; ++line) {
      for (std::size_t c = 0; c < widths.size(); ++c) {
        std::vector<std::string> lines = split(cells[r][c], '\n');
        std::string text = line < lines.size() ? lines[line] : "";
        text = c == 0 ? to_the_right(text, widths[c]) : centred(text, widths[c]);
        out += "│ " + text + " ";
      }
      out += "│\n";
    }
  }
  return out + rule(widths, "╘", "═", "╧", "╛");
}

std::string cell_of(const PairedResult& result, const ScoreStyle& style) {
  int decimals = style.decimals;
  std::string out = fmt::format("{:.{}f}", result.score, decimals);
  if (result.confidence) {
    out += fmt::format(" ({:.{}f} ± {:.{}f})", result.confidence->mean, decimals,
                       result.confidence->half_width, decimals);
  }
  if (result.p_value) {
    bool chance = *result.p_value > 0.05;
    out += fmt::format("\n{}(p = {:.4f}){}{}", chance && style.color ? kRed : "", *result.p_value,
                       chance && style.color ? kPlain : "", chance ? "" : "*");
  }
  return out;
}

std::string test_explanation(const SystemTable& table) {
  bool bootstrap = table.test == PairedTest::kBootstrap;
  std::string title = fmt::format("Paired {} test with {} {}",
                                  bootstrap ? "bootstrap resampling" : "approximate randomization",
                                  table.trials, bootstrap ? "resampling trials" : "trials");
  std::string line(title.size(), '-');
  std::string out = line + "\n" + title + "\n" + line + "\n";
  out += fmt::format(" - Each system is pairwise compared to {}.\n", table.systems.front());
  out += bootstrap
             ? "   Actual system score / bootstrap estimated true mean / 95% CI are provided for "
               "each metric.\n"
             : "   Actual system score is provided for each metric.\n";
  return out +
         R"(
 - Null hypothesis: the system and the baseline translations are essentially
   generated by the same underlying process. For a given system and the baseline,
   the p-value is roughly the probability of the absolute score difference (delta)
   or higher occurring due to chance, under the assumption that the null hypothesis is correct.

 - Assuming a significance threshold of 0.05, the null hypothesis can be rejected
   for p-values < 0.05 (marked with "*"). This means that the delta is unlikely to be attributed
   to chance, hence the system is significantly "different" than the baseline.
   Otherwise, the p-values are highlighted in red.

 - NOTE: Significance does not tell whether a system is "better" than the baseline but rather
   emphasizes the "difference" of the systems in terms of the replicability of the delta.

)";
}

}  // namespace

ScoreResult make_result(const TextMetric& metric, std::span<const double> sums,
                        const SignatureContext& context) {
  return {.name = metric.name(),
          .score = metric.value(sums).score,
          .details = metric.details(sums),
          .signature = signature_of(metric, context)};
}

std::string score_line(const ScoreResult& result, const ScoreStyle& style) {
  std::string number = fmt::format("{:.{}f}", result.score, style.decimals);
  if (shows_confidence(result)) {
    number += fmt::format(" ({})", confidence_text(*result.confidence, style.decimals));
  }
  if (style.score_only) return number;
  std::string out =
      fmt::format("{}|{} = {}", result.name, signature_text(result.signature, style.brief), number);
  return result.details.empty() ? out : out + " " + result.details;
}

std::string score_lines(const std::vector<ScoreResult>& results, const ScoreStyle& style) {
  std::vector<std::string> lines;
  std::vector<std::size_t> margins;
  for (const ScoreResult& result : results) {
    lines.push_back(score_line(result, style));
    std::size_t equals = lines.back().find('=');
    bool aligned = results.size() > 1 && equals != std::string::npos;
    margins.push_back(aligned ? width_of(lines.back().substr(0, equals)) : 0);
  }
  std::size_t widest = *std::max_element(margins.begin(), margins.end());
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::size_t blanks = margins[i] == 0 ? 0 : widest - margins[i];
    out += std::string(blanks, ' ') + lines[i] + "\n";
  }
  return out;
}

std::string score_json(const std::vector<ScoreResult>& results, const ScoreStyle& style) {
  std::string out;
  for (const ScoreResult& result : results) {
    if (!out.empty()) out += ",\n";
    out += object_of(members_of(result, style), "\n ", "\n");
  }
  return results.size() == 1 ? out + "\n" : "[\n" + out + "\n]\n";
}

std::string score_json_line(const ScoreResult& result, const ScoreStyle& style) {
  return object_of(members_of(result, style), "", "") + "\n";
}

std::string table_text(const SystemTable& table, const ScoreStyle& style) {
  std::vector<std::vector<std::string>> cells{{"System"}};
  for (const std::string& system : table.systems) cells.push_back({system});
  bool any_confidence = false;  // as in sacreBLEU: from the first column with one on
  for (const SystemTable::Column& column : table.columns) {
    for (std::size_t s = 0; s < table.systems.size(); ++s) {
      any_confidence = any_confidence || column.results[s].confidence.has_value();
      cells[s + 1].push_back(cell_of(column.results[s], style));
    }
    cells[0].push_back(column.metric + (any_confidence ? " (μ ± 95% CI)" : ""));
  }
  std::string out = grid(cells) + "\n";
  if (table.test) out += test_explanation(table);
  out += "-----------------\nMetric signatures\n-----------------\n";
  for (const SystemTable::Column& column : table.columns) {
    out +=
        fmt::format(" - {:<10} {}\n", column.metric, signature_text(column.signature, style.brief));
  }
  return out;
}

std::string table_json(const SystemTable& table, const ScoreStyle& style) {
  std::string out;
  for (std::size_t s = 0; s < table.systems.size(); ++s) {
    Members system{{"system", quoted(table.systems[s], true)}};
    for (const SystemTable::Column& column : table.columns) {
      const PairedResult& r = column.results[s];
      if (!table.test) {
        system.emplace_back(column.metric, fmt::format("\"{:.{}f}\"", r.score, style.decimals));
        continue;
      }
      Members values{
          {"score", python_number(r.score)},
          {"p_value", r.p_value ? python_number(*r.p_value) : "null"},
          {"mean", r.confidence ? python_number(r.confidence->mean) : "null"},
          {"ci", r.confidence ? python_number(r.confidence->half_width) : "null"},
      };
      system.emplace_back(column.metric, object_of(values, "\n            ", "\n        "));
    }
    out += fmt::format("{}    {}", s > 0 ? ",\n" : "", object_of(system, "\n        ", "\n    "));
  }
  return "[\n" + out + "\n]\n";
}

}  // namespace lockstep
