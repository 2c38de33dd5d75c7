// Files that a mirror takes: those of a checkpoint, and those of the run folder besides.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/store/object_store.h"
#include "train/folder/run_folder.h"

namespace lockstep {

// A run's file above this is copied at its start and end only.
inline constexpr uintmax_t kLargeFile = 64'000'000;

// Copies a checkpoint of `folder`, DONE last, after a look at what is there. `sent` holds the files
// that an attempt before has brought there, with their SHA-256, and is kept up. Of a checkpoint of
// that step that is there already only what differs is copied. Returns the bytes copied.
int64_t put_checkpoint(ObjectStore& store, int64_t step, const fs::path& folder,
                       std::map<std::string, std::string>& sent);

// Returns the run's files besides checkpoints, relative to its folder: those in it, and in times,
// events, logs and trace. Not: the lock, mirror.json, names that begin with a dot, unfinished ones.
std::vector<fs::path> mirrored_files(const RunFolder& folder);

// Copies one of them as it is now, without a last line that is half written. `aside` is a folder
// for the copy that is sent. Returns false where the file is gone.
bool put_run_file(ObjectStore& store, const RunFolder& folder, const fs::path& file,
                  const fs::path& aside);

}  // namespace lockstep
