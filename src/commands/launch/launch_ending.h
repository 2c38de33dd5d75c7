// The options of launch on the end of a run and on money, made sense of.
#pragma once

#include "commands/launch/launch_arguments.h"
#include "launch/job/launcher.h"

namespace lockstep {

// What is known of the run.
struct EndingFacts {
  std::string run;        // run folder as the hosts have it; empty: no training
  bool mirrored = false;  // checkpoint.mirror is set
  bool detached = false;  // this is, or is to be, the launcher of a detached job
};

// Returns what --notify, --then, --price, --budget and --power-off ask for. `launch` has its hosts,
// its supervision and the place of launch.jsonl. Throws ConfigError for whatever cannot work,
// before anything has started.
EndingOptions ending_of(const LaunchArguments& given, const Launch& launch,
                        const EndingFacts& facts);

// Writes what --notify and prices mean into the words, for the launcher on another host: files of
// this machine are not there.
void settle_ending(LaunchArguments& given, const EndingOptions& ending, const HostList& hosts);

}  // namespace lockstep
