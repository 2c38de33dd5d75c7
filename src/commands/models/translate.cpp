#include "commands/models/translate.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>

#include "base/log.h"
#include "commands/models/translation_model.h"
#include "commands/process/process_setup.h"
#include "tasks/translator.h"

namespace lockstep {

namespace {

struct TranslateArguments : TranslationArguments {
  std::string input, output;
  int64_t chunk = 1024;
  bool statistics = false;
};

// Translates the lines of a file or of standard input, in chunks, to a file or standard output.
class LineTranslator {
 public:
  // Throws ConfigError when more translations are asked for than the beam holds.
  LineTranslator(const TranslationUse& model, const TranslateArguments& arguments)
      : model_text_(model.model_text()),
        translator_(model.translator()),
        chunk_(static_cast<std::size_t>(arguments.chunk)),
        n_best_(arguments.n_best),
        file_(arguments.output) {
    translator_->translate({}, std::max<int64_t>(1, n_best_));
    interactive_ = arguments.input.empty() && ::isatty(STDIN_FILENO) == 1;
    name_ = arguments.input.empty() ? "standard input" : arguments.input;
  }

  void add(std::string_view line, int64_t number) {
    if (auto at = invalid_utf8_at(line)) {
      throw DataError("{}:{}:{}: byte 0x{:02x} is not valid UTF-8", name_, number, *at + 1,
                      static_cast<unsigned char>(line[*at]));
    }
    lines_.emplace_back(line);
    if (interactive_ || lines_.size() == chunk_) flush();
  }

  void run_standard_input() {
    if (interactive_) greet();
    prompt();
    std::string line;
    for (int64_t number = 1; std::getline(std::cin, line); ++number) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      add(line, number);
      prompt();
    }
    if (interactive_) fmt::print(stderr, "\n");
  }

  // Translates what is left, and writes the output file, which is complete or absent.
  void finish() {
    flush();
    if (!file_.empty()) write_file(file_, collected_);
  }

  void log_statistics() const {
    log_info("{} lines, {} pieces in {:.3f} s: {:.0f} pieces a second", done_, pieces_,
             seconds_.count(), static_cast<double>(pieces_) / seconds_.count());
  }

 private:
  void flush() {
    const auto start = std::chrono::steady_clock::now();
    std::string text;
    for (const auto& of_line : translator_->translate(lines_, std::max<int64_t>(1, n_best_))) {
      for (const Hypothesis& hypothesis : of_line) {
        text += printed(hypothesis);
        pieces_ += std::ssize(hypothesis.ids);
      }
      ++done_;
    }
    seconds_ += std::chrono::steady_clock::now() - start;
    lines_.clear();
    if (!file_.empty()) {
      collected_ += text;
      return;
    }
    fmt::print("{}", text);
    std::fflush(stdout);
  }

  // Returns the text; with --n-best, also the number of its line and its score.
  std::string printed(const Hypothesis& hypothesis) const {
    const std::string text = translator_->text(hypothesis);
    if (n_best_ == 0) return text + "\n";
    return fmt::format("{} ||| {} ||| {:.6f}\n", done_, text, hypothesis.score);
  }

  void greet() const { fmt::print(stderr, "{}; a sentence a line, Ctrl-D ends\n", model_text_); }

  void prompt() const {
    if (interactive_) fmt::print(stderr, "> ");
  }

  std::string model_text_;
  std::unique_ptr<Translator> translator_;
  std::size_t chunk_;
  int64_t n_best_;
  std::string file_, name_;
  bool interactive_ = false;
  std::vector<std::string> lines_;
  std::string collected_;
  int64_t done_ = 0, pieces_ = 0;  // lines translated, pieces of their translations
  std::chrono::duration<double> seconds_{0};
};

}  // namespace

int translate(const Arguments& arguments) {
  TranslateArguments a;
  CommandLine app("Translates lines: standard input to standard output, or files.",
                  "lockstep translate");
  add_translation_options(
      app, a, "print so many translations a line: number of the line ||| text ||| score");
  app.add_option("--input", a.input, "a file of sentences (plain or .gz)");
  app.add_option("--output", a.output, "write the translations here, whole or not at all");
  app.add_option("--chunk", a.chunk, "lines that are sorted by length and translated together")
      ->positive()
      ->capture_default_str();
  app.add_flag("--statistics", a.statistics, "say at the end how fast it was, loading not counted");
  if (!app.parse(arguments)) return kExitOk;
  prepare_process({});
  const std::string name = take_run("translate", a);
  const SavedRun run = open_saved_run(name, a.run);
  LineTranslator translator(translation_of(run, a.words.front()), a);
  if (a.input.empty()) {
    translator.run_standard_input();
  } else {
    for_each_line(a.input, [&](std::string_view line, int64_t n) { translator.add(line, n); });
  }
  translator.finish();
  if (a.statistics) translator.log_statistics();
  return kExitOk;
}

}  // namespace lockstep
