// The layouts of data sets on the Hugging Face hub: which files are data, and of which split, as
// Hugging Face's `datasets` (data_files.py) reads it from their names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "data/fetch/hub_data.h"

namespace lockstep {

// Returns the kind of a file of a repository that is data of that content, by its name: its ending
// without ".gz", ".tar" for archives, ".jpg" for pictures and their metadata. Empty for others, and
// for hidden files and those that describe a data set.
std::string hub_file_kind(const std::string& path, HubContent content);

// Whether it is metadata.csv or metadata.jsonl, which say the classes of pictures.
bool is_hub_metadata(const std::string& path);

// Returns the files that match a pattern of data_files: "*" and "?" within a folder, "**" over
// folders, "[...]".
std::vector<std::string> matching_files(const std::vector<std::string>& files,
                                        const std::string& pattern);

// Adds files to the split of that name, each once.
void add_hub_files(const std::string& name, const std::vector<std::string>& files,
                   std::vector<HubSplit>& out);

// Tries the layouts in the order of `datasets`: data/SPLIT-00000-of-00002.parquet, a folder named
// after a split, a file named after a split; else all files are train.
std::vector<HubSplit> splits_by_name(const std::vector<std::string>& files);

// Reads the layout of the branch refs/convert/parquet, CONFIGURATION/SPLIT/0000.parquet
// ("partial-SPLIT" where the hub converted the first gigabytes only), by configuration. Empty when
// the files are not laid out so.
std::map<std::string, std::vector<HubSplit>> converted_layout(
    const std::vector<std::string>& files);

}  // namespace lockstep
