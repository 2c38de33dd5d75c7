// Answers beyond the eleven questions: samples, comparison with other runs, how to repeat the run.
#include <fmt/format.h>

#include "base/text.h"
#include "report/answers/answers.h"
#include "report/compare/comparison.h"
#include "report/compare/comparison_plots.h"
#include "report/compare/comparison_table.h"
#include "report/run/read_json.h"

namespace lockstep {

Answer answer_samples(const Run& run) {
  Answer out{.id = "samples", .question = "Samples"};
  if (run.facts.samples.empty()) {
    out.verdict = "None were logged.";
    out.not_measured.push_back(
        {"samples", "no evaluation logged any", "evaluation.samples, with evaluation.every"});
    return out;
  }
  out.verdict = fmt::format("Of the evaluation at step {}.", with_commas(run.facts.samples_step));
  TextTable table{{"source", "reference", "output"}, {}, "lll"};
  for (const RunSample& s : run.facts.samples)
    table.rows.push_back({s.source, s.reference, s.output});
  out.tables.push_back(table);
  return out;
}

Answer answer_comparison(const std::vector<fs::path>& folders) {
  Answer out{.id = "comparison", .question = "Beside other runs"};
  if (folders.size() < 2) {
    out.verdict = "No other run was given.";
    out.not_measured.push_back(
        {"comparison", "one run was given", "lockstep report RUN EARLIER..., or lockstep compare"});
    return out;
  }
  const Comparison comparison = compare_runs(read_compared(folders));
  out.verdict =
      fmt::format("{} runs; the first is the one of this report.", comparison.runs.size());
  out.tables.push_back(comparison_table(comparison));
  out.evidence = comparison.notes;
  out.facts = comparison_json(comparison);
  out.figures = comparison_figures(comparison);
  for (Figure& figure : out.figures) figure.name = "compare-" + figure.name;
  return out;
}

namespace {

// More are only counted: a corpus of message catalogues comes from thousands of packages.
constexpr std::size_t kInputsShown = 20;

// Adds the files that the data were made of, by the data's manifest.
void add_inputs(const DataFacts& data, Answer& out) {
  const ReadJson& m = data.manifest;
  if (!m.is_object() || !m.contains("inputs") || !m["inputs"].is_array()) return;
  TextTable table{{"input", "bytes", "SHA-256"}, {}, "lrl"};
  double bytes = 0;
  for (const ReadJson& file : m["inputs"]) {
    const auto size = file.value("bytes", int64_t{0});
    bytes += static_cast<double>(size);
    if (table.rows.size() == kInputsShown) continue;
    table.rows.push_back({file.value("name", ""), with_commas(size), file.value("sha256", "")});
  }
  if (m["inputs"].size() > kInputsShown) {
    out.evidence.push_back(fmt::format(
        "The data were made of {} files, {}. The first {} are below, all of them in {}.",
        with_commas(static_cast<int64_t>(m["inputs"].size())), short_bytes(bytes), kInputsShown,
        data.source.filename().string()));
  }
  if (!table.rows.empty()) out.tables.push_back(table);
}

}  // namespace

Answer answer_repeat(const Run& run) {
  Answer out{.id = "repeat", .question = "How to repeat it"};
  const RunFacts& f = run.facts;
  out.verdict =
      "The run folder's config.toml is the whole configuration, every key with its value.";
  const int ranks = f.ranks(), hosts = f.hosts();
  std::string train = "lockstep train RUN/config.toml run.folder=runs/again";
  if (ranks > 1) {
    std::string places = fmt::format("-n {}", ranks);
    for (int i = 1; hosts > 1 && i <= hosts; ++i) {
      places = fmt::format("{}HOST{}:{}", i == 1 ? "-H " : places + ",", i, ranks / hosts);
    }
    train =
        fmt::format("lockstep launch {} -- train RUN/config.toml run.folder=runs/again", places);
  }
  out.code.push_back(train);
  TextTable table{{"version of", "is"}, {}, "ll"};
  for (const auto& [name, value] : f.versions) {
    table.rows.push_back({name, value});
    out.facts["versions"][name] = value;
  }
  if (!table.rows.empty()) out.tables.push_back(table);
  out.facts["command"] = train;
  if (!f.configs.empty()) {
    out.evidence.push_back(
        fmt::format("The configuration was changed by --resume: {} {} what was in "
                    "force before.",
                    join(f.configs, ", "), f.configs.size() == 1 ? "is" : "are"));
  }
  add_inputs(f.data, out);
  out.evidence.push_back(
      "With the same data, ranks and threads the weights come out equal bit for bit; with others "
      "up to "
      "rounding.");
  return out;
}

}  // namespace lockstep
