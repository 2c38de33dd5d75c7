#include "commands/shared/computing.h"

#include <cstdlib>

#include "base/error.h"
#include "base/module.h"

namespace lockstep {

namespace {

constexpr const char* kLibrary = "liblockstep_computing.so";

ComputingCommands loaded = nullptr;

// How long OpenMP's threads spin at the end of a parallel loop before they sleep. libgomp's own
// 300,000 turns keep a core busy for milliseconds: alone that is harmless, but beside another busy
// program a run falls far below its share, for its threads spend their time slices waiting for one
// another. 10,000 turns bridge the gaps between the loops of a step and cost nothing alone
// (docs/training.md#where-the-speed-comes-from). libgomp reads the variable when it is loaded.
void set_wait_policy() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "10000", 0);
}

}  // namespace

ComputingCommands load_computing() {
  if (loaded != nullptr) return loaded;
  set_wait_policy();
  const Module module = load_module(kLibrary, "lockstep_computing", true);
  if (module.function == nullptr) {
    MachineError error("cannot load {}: {}", kLibrary, module.why);
    error.set_advice(
        "here scripts/setup or pip brings the whole program, on a host lockstep cluster setup");
    throw error;
  }
  loaded = reinterpret_cast<ComputingCommands>(module.function);
  return loaded;
}

void set_computing(ComputingCommands commands) { loaded = commands; }

}  // namespace lockstep
