#include "commands/models/evaluate.h"

#include <fmt/ranges.h>

#include "base/file.h"
#include "base/log.h"
#include "base/table.h"
#include "commands/process/mirrored_run.h"
#include "commands/process/process_setup.h"
#include "metrics/bleu.h"
#include "metrics/chrf.h"
#include "report/compare/confusion_picture.h"
#include "tasks/uses.h"
#include "train/checkpoint/saved_run.h"

namespace lockstep {

namespace {

struct EvaluateArguments {
  std::vector<std::string> words;
  SavedRunOptions run;
  std::string split, source, reference, output, confusion;
  int64_t limit = 0, samples = 0;
  bool by_class = false;
};

// Computes BLEU and chrF of a pair of files; rank 0 prints them.
void evaluate_files(World& world, const TranslationUse& model, const EvaluateArguments& a) {
  std::vector<std::string> source = read_lines(a.source), reference = read_lines(a.reference);
  if (source.size() != reference.size()) {
    throw DataError("{} has {} lines, {} has {}: expected one reference for each line", a.source,
                    source.size(), a.reference, reference.size());
  }
  std::vector<std::string> output = model.translate_shared(world, source);
  if (!world.is_leader()) return;
  Bleu bleu;
  Chrf chrf;
  fmt::print("{}\n", bleu.format(bleu.corpus(output, {reference}), 1, 2));
  fmt::print("{}|{} = {:.2f}\n", chrf.name(), signature_text(signature_of(chrf, {})),
             chrf.corpus(output, {reference}));
  if (!a.output.empty()) {
    write_file(a.output, fmt::format("{}\n", fmt::join(output, "\n")));
  }
}

// Prints classes with their accuracy and the most frequent mistakes, and draws the picture if
// asked.
void show_confusion(const Evaluation& result, const EvaluateArguments& a) {
  if (!result.confusion) throw ConfigError("evaluate: --by-class and --confusion need classes");
  const Confusion& confusion = *result.confusion;
  if (a.by_class) {
    std::vector<std::vector<std::string>> rows = {
        {"class", "items", "recall %", "precision %", "f1 %"}};
    for (int64_t c = 0; c < confusion.size(); ++c) {
      const ClassScore score = class_score(confusion, c);
      rows.push_back({confusion.classes[c], std::to_string(score.items),
                      fmt::format("{:.2f}", 100 * score.recall),
                      fmt::format("{:.2f}", 100 * score.precision),
                      fmt::format("{:.2f}", 100 * score.f1)});
    }
    fmt::print("{}", format_table(rows, "lrrrr"));
    for (const Mistake& m : frequent_mistakes(confusion, 10)) {
      fmt::print("  {} x {} taken for {}\n", m.items, confusion.classes[m.label],
                 confusion.classes[m.taken_for]);
    }
  }
  if (a.confusion.empty()) return;
  const std::string kind = fs::path(a.confusion).extension().string();
  write_file(a.confusion, kind == ".svg"   ? confusion_svg(confusion, result.summary)
                          : kind == ".png" ? confusion_png(confusion)
                                           : confusion_table(confusion));
}

void describe(CommandLine& app, EvaluateArguments& a) {
  app.add_option("words", a.words, "RUN, and key=value words such as decoding.beam_size=1");
  app.add_option("--checkpoint", a.run.checkpoint, kCheckpointHelp)->capture_default_str();
  app.add_option("--split", a.split, "of the run's data; by default test, of images val");
  app.add_option("--limit", a.limit, "items of the split; 0: all")
      ->non_negative()
      ->capture_default_str();
  app.add_option("--samples", a.samples, "items to show with what came out")
      ->non_negative()
      ->capture_default_str();
  auto source = app.add_option("--source", a.source, "a file of sentences instead (plain or .gz)");
  auto reference = app.add_option("--reference", a.reference, "their translations");
  source->needs(reference);
  reference->needs(source);
  app.add_option("--output", a.output, "write the translations of --source here")->needs(source);
  app.add_flag("--by-class", a.by_class,
               "recall, precision and F1 of each class, the usual mistakes");
  app.add_option("--confusion", a.confusion,
                 "of classes: write what was taken for what as a picture (.svg, .png) or a table "
                 "(.tsv)")
      ->check([](const std::string& file) {
        const std::string kind = fs::path(file).extension().string();
        return kind == ".svg" || kind == ".png" || kind == ".tsv"
                   ? ""
                   : file + ": expected a name that ends in .svg, .png or .tsv";
      });
}

}  // namespace

int evaluate(const Arguments& arguments) {
  EvaluateArguments a;
  CommandLine app(
      "Measures a run's model on a split of its data, or on a file: BLEU of translations, accuracy "
      "of classes.",
      "lockstep evaluate");
  describe(app, a);
  if (!app.parse(arguments)) return kExitOk;
  a.run.words = take_settings(a.words);
  if (a.words.size() != 1) throw ConfigError("evaluate: expected one run folder");

  LaunchEnvironment environment = detect_launch_environment();
  a.run.local_rank = environment.local_rank;
  a.run.local_size = environment.local_size;
  prepare_process(environment);
  World world(environment, {});
  configure_log({.console = world.is_leader()});
  SavedRun run = open_saved_run(local_run(a.words.front(), a.run), a.run);
  if (!a.source.empty()) {
    const TranslationUse* model = run.config.task->translating();
    if (model == nullptr) throw ConfigError("evaluate: --source is for translation runs");
    evaluate_files(world, *model, a);
    return kExitOk;
  }
  Task& task = *run.config.task;
  if (a.split.empty()) a.split = task.final_split();
  const bool by_class = a.by_class || !a.confusion.empty();
  Evaluation result = task.evaluate(
      world, {.split = a.split, .limit = a.limit, .samples = a.samples, .confusion = by_class});
  if (!world.is_leader()) return kExitOk;
  fmt::print("{}\n", result.summary);
  if (by_class) show_confusion(result, a);
  for (const Sample& sample : result.samples) {
    fmt::print("  source     {}\n  reference  {}\n  output     {}\n", sample.source,
               sample.reference, sample.output);
  }
  return kExitOk;
}

}  // namespace lockstep
