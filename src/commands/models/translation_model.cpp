#include "commands/models/translation_model.h"

#include "commands/process/mirrored_run.h"
#include "commands/process/process_setup.h"

namespace lockstep {

void add_translation_options(CommandLine& app, TranslationArguments& arguments,
                             const std::string& n_best_help) {
  app.add_option("words", arguments.words, "RUN, and key=value words such as decoding.beam_size=1");
  app.add_option("--checkpoint", arguments.run.checkpoint, kCheckpointHelp)->capture_default_str();
  app.add_option("--n-best", arguments.n_best, n_best_help)->positive();
}

std::string take_run(const std::string& command, TranslationArguments& arguments) {
  arguments.run.words = take_settings(arguments.words);
  if (arguments.words.size() != 1) throw ConfigError("{}: expected one run folder", command);
  return local_run(arguments.words.front(), arguments.run);
}

const TranslationUse& translation_of(const SavedRun& run, const std::string& name) {
  const TranslationUse* model = run.config.task->translating();
  if (model == nullptr) {
    throw ConfigError("{}: its task is {}, not translation", name, run.config.task_name);
  }
  return *model;
}

}  // namespace lockstep
