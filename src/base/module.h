// Parts of the program that are libraries of their own, loaded when they are first needed: what
// they link to (Arrow, CUDA) need not be on every machine.
#pragma once

#include <string>

namespace lockstep {

struct Module {
  void* function = nullptr;  // the one that was asked for; null when the module cannot be had
  std::string why;           // then: the reason, as a clause ("this program was built without it")
};

// The function `function` of the library `file`, which stands beside the program, in the folder lib
// beside the program's own folder (an installed one), or one folder up (programs of tests). It
// stays loaded. Safe to call again; every call looks anew.
Module load_module(const std::string& file, const char* function);

}  // namespace lockstep
