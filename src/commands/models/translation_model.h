// What commands that use a translation model have in common: options, and opening it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/shared/command_line.h"
#include "tasks/uses.h"
#include "train/checkpoint/saved_run.h"

namespace lockstep {

struct TranslationArguments {
  std::vector<std::string> words;  // RUN, and key=value words
  SavedRunOptions run;
  int64_t n_best = 0;  // 0: the best translation alone, without its line's number and score
};

// Adds the run, --checkpoint and --n-best. `arguments` must outlive the parsing.
void add_translation_options(CommandLine& app, TranslationArguments& arguments,
                             const std::string& n_best_help);

// Moves the key=value words to the run's and returns the name of the run, the only other one, or of
// its copy here (commands/process/mirrored_run.h). Throws ConfigError.
std::string take_run(const std::string& command, TranslationArguments& arguments);

// Throws ConfigError when the run's task is another one. `name` is the run's, for the message.
const TranslationUse& translation_of(const SavedRun& run, const std::string& name);

}  // namespace lockstep
