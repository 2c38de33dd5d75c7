// Loads parts of the program that are separate shared libraries when they are first needed. So the
// libraries they link to (Arrow, CUDA) need not be on every machine.
#pragma once

#include <string>

namespace lockstep {

struct Module {
  void* function = nullptr;  // the requested function; null when the module is unavailable
  std::string why;           // why it is null, as a clause ("this program was built without it")
};

// Loads the library `file` and returns its function `function`. The library is looked for beside
// the program, then in the folder lib beside the program's folder (an installed program), then one
// folder up (test programs). It stays loaded. The function may be called again; every call searches
// anew.
// `lazily`: what it lacks of other libraries' functions shows when it calls them, not here, and
// loading it takes less time.
Module load_module(const std::string& file, const char* function, bool lazily = false);

}  // namespace lockstep
