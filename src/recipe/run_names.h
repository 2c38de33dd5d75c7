// How what `lockstep new` makes is called: configuration, prepared data, run.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

struct RunNames {
  std::string config;  // the file to write
  std::string data;    // the folder that `prepare` will make, or the prepared one that is there
  std::string run;     // run.folder, one that is not there yet
};

// From the data's own name ("multi30k", "train" of train.en) or that of `out`, where it is given.
// `prepared`: the data are ready where they are.
RunNames choose_names(const fs::path& data, const std::string& out, bool prepared);

// Throws ConfigError when there is something at that path: nothing is overwritten.
void require_no_file(const fs::path& config);

// The words as one line for a shell; those with odd characters in quotes.
std::string command_line(const std::vector<std::string>& words);

}  // namespace lockstep
