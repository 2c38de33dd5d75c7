// Runs lockstep jobs: the jobs that go on by themselves, and how they are.
#pragma once

#include "commands/shared/command_line.h"

namespace lockstep {

int list_jobs(const Arguments& arguments);

}  // namespace lockstep
