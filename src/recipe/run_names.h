// Chooses the names of what `lockstep new` makes: the configuration, the prepared data and the run.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep {

struct RunNames {
  std::string config;  // the file to write
  std::string data;    // the folder that `prepare` will make, or the prepared one
  std::string run;     // run.folder, a folder that does not exist yet
};

// Names everything after the data ("multi30k", "train" for train.en) or after `out` if it is given.
// `prepared` says that `data` is already prepared.
RunNames choose_names(const fs::path& data, const std::string& out, bool prepared);

// Throws ConfigError if the path exists, because nothing may be overwritten.
void require_no_file(const fs::path& config);

// Returns the words as one line for a shell. Words with special characters are quoted.
std::string command_line(const std::vector<std::string>& words);

}  // namespace lockstep
