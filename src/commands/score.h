// lockstep score HYP REF...: BLEU, chrF and TER of files, as sacreBLEU computes and prints them.
#pragma once

#include "commands/command_line.h"

namespace lockstep {

int score(const Arguments& arguments);

}  // namespace lockstep
