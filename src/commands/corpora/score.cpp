#include "commands/corpora/score.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>

#include "base/catalogue.h"
#include "base/file.h"
#include "base/log.h"
#include "base/ordered_parallel.h"
#include "base/text.h"
#include "base/usable_cores.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "metrics/line_text.h"
#include "metrics/score_report.h"
#include "metrics/ter.h"

namespace lockstep {

namespace {

using Lines = std::vector<std::string>;

struct ScoreOptions {
  std::vector<std::string> files, more_systems, metrics{"bleu"};
  BleuConfig bleu;
  ChrfConfig chrf;
  TerConfig ter;
  ScoreStyle style;
  bool json = false, sentences = false, force = false, quiet = false;
  bool confidence = false, bootstrap = false, randomization = false;
  int64_t confidence_resamples = 1000, bootstrap_trials = 1000, randomization_trials = 10000;
  int64_t reference_columns = 1;
};

using MetricMaker = std::unique_ptr<TextMetric> (*)(const ScoreOptions&);

const Catalogue<MetricMaker>& metric_makers() {
  static const Catalogue<MetricMaker> catalogue = [] {
    Catalogue<MetricMaker> c("metric");
    c.add(
        "bleu",
        [](const ScoreOptions& o) -> std::unique_ptr<TextMetric> {
          return std::make_unique<Bleu>(o.bleu);
        },
        "n-grams of words");
    c.add(
        "chrf",
        [](const ScoreOptions& o) -> std::unique_ptr<TextMetric> {
          return std::make_unique<Chrf>(o.chrf);
        },
        "n-grams of characters");
    c.add(
        "ter",
        [](const ScoreOptions& o) -> std::unique_ptr<TextMetric> {
          return std::make_unique<Ter>(o.ter);
        },
        "edits of words");
    return c;
  }();
  return catalogue;
}

void add_bleu_options(CommandLine& app, ScoreOptions& o) {
  app.add_option("--tokenize", o.bleu.tokenizer, "13a, none, intl or char")
      ->capture_default_str()
      ->group("BLEU");
  app.add_flag("--lowercase", o.bleu.lowercase, "case does not count")->group("BLEU");
  app.add_option("--smooth-method", o.bleu.smoothing, "exp, floor, add-k or none")
      ->capture_default_str()
      ->group("BLEU");
  app.add_option("--smooth-value", o.bleu.smoothing_value, "of floor (0.1) and add-k (1)")
      ->group("BLEU");
  app.add_option("--max-ngram-order", o.bleu.max_order, "longest n-gram")
      ->capture_default_str()
      ->group("BLEU");
  app.add_flag("--effective-order", o.bleu.effective_order,
               "n-grams longer than the text do not count; always with --sentence-level")
      ->group("BLEU");
  app.add_flag("--force", o.force, "no warning for text that looks tokenized")->group("BLEU");
}

void add_other_metrics(CommandLine& app, ScoreOptions& o) {
  app.add_option("--chrf-char-order", o.chrf.char_order, "longest n-gram of characters")
      ->capture_default_str()
      ->group("chrF");
  app.add_option("--chrf-word-order", o.chrf.word_order, "longest n-gram of words; 2: chrF++")
      ->capture_default_str()
      ->group("chrF");
  app.add_option("--chrf-beta", o.chrf.beta, "weight of recall")
      ->capture_default_str()
      ->group("chrF");
  app.add_flag("--chrf-lowercase", o.chrf.lowercase, "case does not count")->group("chrF");
  app.add_flag("--chrf-whitespace", o.chrf.whitespace, "white space counts")->group("chrF");
  app.add_flag("--chrf-eps-smoothing", o.chrf.eps_smoothing, "as NLTK and Moses")->group("chrF");
  app.add_flag("--ter-case-sensitive", o.ter.case_sensitive, "case counts")->group("TER");
  app.add_flag("--ter-asian-support", o.ter.asian_support, "CJK characters are words")
      ->group("TER");
  app.add_flag("--ter-no-punct", o.ter.no_punctuation, "punctuation is removed")->group("TER");
  app.add_flag("--ter-normalized", o.ter.normalized, "punctuation is spaced out")->group("TER");
}

void add_tests(CommandLine& app, ScoreOptions& o) {
  const char* group = "How sure";
  app.add_flag("--confidence", o.confidence, "95 % interval by bootstrap resampling")->group(group);
  app.add_option("--confidence-n", o.confidence_resamples, "resamples")
      ->range(2, int64_t{1} << 31)
      ->capture_default_str()
      ->group(group);
  CommandOption bootstrap =
      app.add_flag("--paired-bs", o.bootstrap, "compare systems with HYP by paired bootstrap")
          ->group(group);
  app.add_flag("--paired-ar", o.randomization, "the same by approximate randomization")
      ->excludes(bootstrap)
      ->group(group);
  app.add_option("--paired-bs-n", o.bootstrap_trials, "resamples")
      ->range(1, int64_t{1} << 31)
      ->capture_default_str()
      ->group(group);
  app.add_option("--paired-ar-n", o.randomization_trials, "trials")
      ->range(1, int64_t{1} << 31)
      ->capture_default_str()
      ->group(group);
}

void add_options(CommandLine& app, ScoreOptions& o) {
  app.add_option("files", o.files, "HYP REF...: text, plain or .gz; - is standard input");
  app.add_option("--system", o.more_systems, "another system's translations; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_option("-m,--metrics", o.metrics, "bleu, chrf, ter; several with commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--num-refs", o.reference_columns, "references in one file, between tabs")
      ->range(1, 1000)
      ->capture_default_str();
  app.add_flag("--sentence-level", o.sentences, "one score a line");
  app.add_flag("--json", o.json, "JSON instead of lines and tables");
  app.add_option("-w,--width", o.style.decimals, "digits after the point")
      ->range(0, 17)
      ->capture_default_str();
  app.add_flag("--short", o.style.brief, "short signatures");
  app.add_flag("-b,--score-only", o.style.score_only, "only the number");
  app.add_flag("-q,--quiet", o.quiet, "no warnings");
  add_bleu_options(app, o);
  add_other_metrics(app, o);
  add_tests(app, o);
}

std::string name_of(const std::string& file) { return file == "-" ? "standard input" : file; }

// Reads lines without white space at their ends, as sacreBLEU does.
Lines read_text(const std::string& file) {
  Lines out;
  auto take = [&](std::string_view line, int64_t number) {
    if (std::optional<std::size_t> at = invalid_utf8_at(line)) {
      throw DataError("{}:{}:{}: byte 0x{:02x} is not valid UTF-8", name_of(file), number,
                      to_code_points(line.substr(0, *at)).size() + 1,
                      static_cast<unsigned char>(line[*at]));
    }
    out.emplace_back(strip_right(line));
  };
  for_each_line(file == "-" ? "/dev/stdin" : file, take);
  return out;
}

// Line i of set r is column r of line i of the file.
std::vector<Lines> read_columns(const std::string& file, int64_t columns) {
  std::vector<Lines> out(static_cast<std::size_t>(columns));
  int64_t number = 0;
  for (const std::string& line : read_text(file)) {
    ++number;
    std::string_view rest = line;
    for (int64_t c = 0; c < columns; ++c) {
      std::size_t tab = c + 1 < columns ? rest.find('\t') : rest.size();
      if (tab == std::string_view::npos) {
        throw DataError("{}:{}: {} references, expected {} between tabs", name_of(file), number,
                        c + 1, columns);
      }
      out[static_cast<std::size_t>(c)].emplace_back(rest.substr(0, tab));
      rest.remove_prefix(std::min(rest.size(), tab + 1));
    }
  }
  return out;
}

struct Texts {
  std::vector<std::string> names;  // of the systems
  std::vector<Lines> systems, references;
};

void check_options(const ScoreOptions& o) {
  if (o.files.size() < 2) {
    throw ConfigError(
        "score: expected the translations and one reference at least; see: "
        "lockstep score --help");
  }
  for (const std::string& name : o.metrics) metric_makers().get(name);
  std::size_t inputs =
      static_cast<std::size_t>(std::count(o.files.begin(), o.files.end(), "-") +
                               std::count(o.more_systems.begin(), o.more_systems.end(), "-"));
  if (inputs > 1) throw ConfigError("score: standard input (-) can be read once only");
  bool several = !o.more_systems.empty();
  bool paired = o.bootstrap || o.randomization;
  if (o.sentences && o.metrics.size() > 1) {
    throw ConfigError("--sentence-level: only one metric at a time, got {}", join(o.metrics, ", "));
  }
  if (o.sentences && (several || o.confidence || paired)) {
    throw ConfigError("--sentence-level: one system, and no interval or test of a single sentence");
  }
  if (paired && !several) throw ConfigError("a paired test needs another system: --system FILE");
  if (o.confidence && several) {
    throw ConfigError("--confidence is for one system; compare several with --paired-bs");
  }
  if (o.reference_columns > 1 && o.files.size() > 2) {
    throw ConfigError("--num-refs: the references are in one file, got {} files",
                      o.files.size() - 1);
  }
}

Texts read_texts(const ScoreOptions& o) {
  Texts texts;
  std::vector<std::string> systems{o.files.front()};
  for (const std::string& name : o.more_systems) {
    if (std::find(systems.begin(), systems.end(), name) != systems.end()) {
      throw ConfigError("--system: {} is given twice", name);
    }
    systems.push_back(name);
  }
  for (const std::string& name : systems) {
    texts.systems.push_back(read_text(name));
    texts.names.push_back(name_of(name));
    if (texts.systems.back().empty()) throw DataError("{}: no line to score", name_of(name));
  }
  auto check = [&](const std::string& file, std::size_t lines) {
    if (lines == texts.systems.front().size()) return;
    throw DataError("{} has {} lines, {} has {}: expected one line for each line", name_of(file),
                    lines, texts.names.front(), texts.systems.front().size());
  };
  for (std::size_t s = 1; s < systems.size(); ++s) check(systems[s], texts.systems[s].size());
  for (std::size_t f = 1; f < o.files.size(); ++f) {
    for (Lines& set : read_columns(o.files[f], o.reference_columns)) {
      check(o.files[f], set.size());
      texts.references.push_back(std::move(set));
    }
  }
  return texts;
}

// Returns the statistics of all segments, computed on all cores.
std::vector<double> statistics_of(const TextMetric& metric, const Lines& system,
                                  const std::vector<Lines>& references) {
  constexpr int64_t kBlock = 64;  // small, since TER's time varies much from line to line
  auto lines = static_cast<int64_t>(system.size());
  std::vector<double> out;
  out.reserve(system.size() * metric.value_count());
  ordered_parallel(
      (lines + kBlock - 1) / kBlock, usable_threads(),
      [&](int64_t block) {
        int64_t end = std::min(lines, (block + 1) * kBlock);
        return metric.statistics(system, references, static_cast<std::size_t>(block * kBlock),
                                 static_cast<std::size_t>(end));
      },
      [&](const std::vector<double>& part) { out.insert(out.end(), part.begin(), part.end()); });
  return out;
}

void warn_of_tokenized(const Lines& system) {
  auto tokenized = std::count_if(system.begin(), system.end(),
                                 [](const std::string& line) { return line.ends_with(" ."); });
  if (tokenized < 100) return;
  log_warning("That's 100 lines that end in a tokenized period ('.')");
  log_warning("It looks like you forgot to detokenize your test data, which may hurt your score.");
  log_warning(
      "If you insist your data is detokenized, or don't care, you can suppress this message with "
      "the `force` parameter.");
}

void print_sentences(const TextMetric& metric, const Texts& texts, const ScoreOptions& o) {
  std::vector<double> statistics = statistics_of(metric, texts.systems.front(), texts.references);
  std::size_t width = metric.value_count();
  for (std::size_t i = 0; i < statistics.size(); i += width) {
    ScoreResult result = make_result(metric, std::span(statistics).subspan(i, width),
                                     {.references = texts.references.size()});
    if (o.json) {
      fmt::print("{}", score_json_line(result, o.style));
    } else {
      fmt::print("{}\n", score_line(result, o.style));
    }
  }
}

ResamplingSeed resampling_seed() {
  const char* text = std::getenv("SACREBLEU_SEED");
  return text == nullptr ? ResamplingSeed{} : ResamplingSeed::parse(text, "SACREBLEU_SEED");
}

using Metrics = std::vector<std::unique_ptr<TextMetric>>;

void print_single(const Metrics& metrics, const Texts& texts, const ScoreOptions& o) {
  SignatureContext context{.references = texts.references.size()};
  ResamplingSeed seed;
  if (o.confidence) {
    seed = resampling_seed();
    context.bootstrap = o.confidence_resamples;
    context.seed = seed.text;
  }
  std::vector<ScoreResult> results;
  for (const auto& metric : metrics) {
    std::vector<double> statistics =
        statistics_of(*metric, texts.systems.front(), texts.references);
    results.push_back(
        make_result(*metric, sum_statistics(statistics, metric->value_count()), context));
    if (!o.confidence) continue;
    results.back().confidence =
        bootstrap_confidence(*metric, statistics, o.confidence_resamples, seed.value);
  }
  fmt::print("{}", o.json ? score_json(results, o.style) : score_lines(results, o.style));
}

void print_table(const Metrics& metrics, const Texts& texts, const ScoreOptions& o) {
  SystemTable table{.systems = texts.names};
  SignatureContext context{.references = texts.references.size()};
  PairedOptions options;
  if (o.bootstrap || o.randomization) {
    ResamplingSeed seed = resampling_seed();
    options = {.test = o.bootstrap ? PairedTest::kBootstrap : PairedTest::kRandomization,
               .trials = o.bootstrap ? o.bootstrap_trials : o.randomization_trials,
               .seed = seed.value};
    context.seed = seed.text;
    (o.bootstrap ? context.bootstrap : context.randomized) = options.trials;
    table.test = options.test;
    table.trials = options.trials;
    table.systems.front() = "Baseline: " + table.systems.front();
  }
  for (const auto& metric : metrics) {
    std::vector<std::vector<double>> statistics;
    for (const Lines& system : texts.systems) {
      statistics.push_back(statistics_of(*metric, system, texts.references));
    }
    SystemTable::Column column{.metric = metric->name(),
                               .signature = signature_of(*metric, context)};
    if (table.test) {
      column.results = paired_test(*metric, statistics, options);
    } else {
      for (const std::vector<double>& s : statistics) {
        column.results.push_back(
            {.score = metric->value(sum_statistics(s, metric->value_count())).score});
      }
    }
    table.columns.push_back(std::move(column));
  }
  fmt::print("{}", o.json ? table_json(table, o.style) : table_text(table, o.style));
}

}  // namespace

int score(const Arguments& arguments) {
  ScoreOptions o;
  CommandLine app("BLEU, chrF and TER of translations, as sacreBLEU " +
                      std::string(kSacrebleuVersion) + " computes and prints them.",
                  "lockstep score");
  add_options(app, o);
  if (!app.parse(arguments)) return kExitOk;
  check_options(o);
  if (o.quiet) configure_log({.console = false});
  if (o.sentences) o.bleu.effective_order = true;
  o.style.color = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  // Only paired tests keep the order of the command line.
  if (!o.bootstrap && !o.randomization) std::sort(o.metrics.begin(), o.metrics.end());
  Metrics metrics;
  std::set<std::string> seen;
  for (const std::string& name : o.metrics) {
    if (seen.insert(name).second) metrics.push_back(metric_makers().get(name)(o));
  }
  Texts texts = read_texts(o);
  if (seen.contains("bleu") && !o.force) {
    for (const Lines& system : texts.systems) warn_of_tokenized(system);
  }
  if (o.sentences) {
    print_sentences(*metrics.front(), texts, o);
  } else if (texts.systems.size() == 1) {
    print_single(metrics, texts, o);
  } else {
    print_table(metrics, texts, o);
  }
  return kExitOk;
}

}  // namespace lockstep
