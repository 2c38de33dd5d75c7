#include "commands/computing/computing_commands.h"

#include <exception>
#include <map>

#include "commands/launch/doctor.h"
#include "commands/launch/launch.h"
#include "commands/launch/plan.h"
#include "commands/launch/probe.h"
#include "commands/launch/sweep.h"
#include "commands/models/average.h"
#include "commands/models/checkpoint.h"
#include "commands/models/classify.h"
#include "commands/models/evaluate.h"
#include "commands/models/export.h"
#include "commands/models/score_pairs.h"
#include "commands/models/serve.h"
#include "commands/models/translate.h"
#include "commands/runs/new.h"
#include "commands/runs/reference.h"
#include "commands/runs/train.h"
#include "commands/shared/exit_code.h"
#include "nn/device_error.h"

namespace lockstep {

namespace {

// What it is for is said in commands/catalogue, by the same names.
const std::map<std::string, int (*)(const Arguments&)> kCommands = {
    {"average", average},
    {"checkpoint", checkpoint},
    {"classify", classify},
    {"doctor", doctor},
    {"evaluate", evaluate},
    {"explain", explain},
    {"export", export_model},
    {"launch", launch},
    {"list", list},
    {"new", new_run},
    {"plan", plan},
    {"probe", probe},
    {"score-pairs", score_pairs_command},
    {"serve", serve},
    {"sweep", sweep},
    {"train", train},
    {"translate", translate},
};

}  // namespace

std::vector<std::string> computing_commands() {
  std::vector<std::string> out;
  for (const auto& [name, command] : kCommands) out.push_back(name);
  return out;
}

int run_computing(const Arguments& words) {
  return exit_code_of([&] {
    try {
      return kCommands.at(words.at(0))({words.begin() + 1, words.end()});
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      if (const auto failed = device_error(error)) throw *failed;
      throw;
    }
  });
}

}  // namespace lockstep
