// Finds and fetches the files of a data set of the Hugging Face hub, with the rules of Hugging
// Face's `datasets`: what the configurations of the card (README.md) say, else what the names of
// folders and files say. The hub's API gives the card as JSON.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/fetch/hub.h"

namespace lockstep {

// Which splits to take, in order: `name` is what we call it ("train", "validation", "test"), `from`
// what the data set calls it.
struct HubSplitChoice {
  std::string name, from;
};
// Parses "train,validation=test". Throws ConfigError when malformed.
std::vector<HubSplitChoice> hub_split_choices(const std::string& text);

enum class HubContent {
  kTables,  // csv, tsv, json, jsonl, parquet
  kImages,  // Parquet, pictures, archives of pictures
};

struct HubDataRequest {
  HubReference dataset;
  std::string configuration;           // a subset; empty: the default one
  std::vector<HubSplitChoice> splits;  // empty: those called train, validation (or the like), test
  HubContent content = HubContent::kTables;
};

struct HubSplit {
  std::string name;                // as chosen; else "train", "validation", "test", "test_matched"
  std::vector<std::string> files;  // in the repository, ascending
};

struct HubData {
  HubReference source;        // with the commit as its revision
  std::string configuration;  // empty: there is only one
  std::vector<HubSplit> splits;
  // Names by label of the columns that the card says are ClassLabels.
  std::map<std::string, std::vector<std::string>> class_names;
  fs::path folder;                  // what the files' names are relative to, once they are fetched
  std::vector<std::string> others;  // splits that were not taken

  // "hf:datasets/OWNER/NAME@COMMIT CONFIGURATION", for manifests.
  std::string name() const;
};

// Chooses the files. Throws DataError for a configuration or split that is not there (with those
// that are), and when there are no files of that content.
HubData choose_hub_data(const HubListing& listing, const HubDataRequest& request);

// Chooses and fetches. A data set whose files are of other kinds (a loading script, say) is taken
// from the hub's own conversion to Parquet, the branch refs/convert/parquet, unless the request
// names a revision. Throws what Hub::listing() and Hub::file() throw.
HubData fetch_hub_data(const Hub& hub, const HubDataRequest& request);

}  // namespace lockstep
