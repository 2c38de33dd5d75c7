#include "commands/export.h"

#include "base/text.h"
#include "commands/session.h"
#include "tasks/translation_export.h"
#include "train/saved_run.h"

namespace lockstep {

int export_model(const Arguments& arguments) {
  std::vector<std::string> words;
  std::string format = "huggingface", out;
  SavedRunOptions run;
  ExportOptions options;
  CLI::App app(
      "Writes a run's model as a folder that transformers and CTranslate2 load, and that "
      "lockstep translate needs nothing else of.",
      "lockstep export");
  app.add_option("words", words, "RUN, and key=value words such as decoding.beam_size=5");
  app.add_option("--format", format, "huggingface")
      ->check(CLI::IsMember({"huggingface"}))
      ->capture_default_str();
  app.add_option("--out", out, "the folder to write; holds no model yet")->required();
  app.add_option("--checkpoint", run.checkpoint, "best, newest or step_N")->capture_default_str();
  app.add_option("--precision", options.precision, "fp32, bf16, or int8 (for lockstep alone)")
      ->check(CLI::IsMember({"fp32", "bf16", "int8"}))
      ->capture_default_str();
  if (!parse_arguments(app, arguments)) return kExitOk;
  run.words = take_settings(words);
  run.words.push_back("run.device=cpu");
  if (words.size() != 1) throw ConfigError("export: expected one run folder");

  prepare_process({});
  SavedRun saved = open_saved_run(words.front(), run);
  auto task = dynamic_cast<Translation*>(saved.config.task.get());
  if (task == nullptr) {
    throw ConfigError("{}: its task is {}, not translation", words.front(), saved.config.task_name);
  }
  options.folder = out;
  options.run_folder = words.front();
  const int64_t bytes = export_translation(*task, options);
  fmt::print("{}: {} in {}\n", out, short_bytes(static_cast<double>(bytes)), options.precision);
  return kExitOk;
}

}  // namespace lockstep
