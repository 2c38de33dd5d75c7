// The library of the commands that compute (commands/shared/computing.h).
#include "commands/computing/computing_commands.h"

extern "C" int lockstep_computing(const lockstep::Arguments& words) {
  return lockstep::run_computing(words);
}
