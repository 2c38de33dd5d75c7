// From data to a configuration that is written: what `lockstep new` does.
#pragma once

#include <string>
#include <vector>

#include "base/catalogue.h"
#include "data/labelled/text_manifest.h"
#include "recipe/facts.h"
#include "recipe/recipe.h"
#include "recipe/run_names.h"

namespace lockstep {

struct NewOptions {
  std::vector<std::string> data;  // as the command was given it
  std::string out;                // the configuration; empty: by the data's name
  Budget budget;
  std::vector<std::string> dev, test;  // of translation: source and target, or none
  std::string source_language;
  std::string images_labels;  // of flat val folders
  TextColumns columns;        // of texts; empty: found
  bool values = false;        // of texts: numbers are predicted
  std::string model;          // of texts: what to begin with; empty: chosen
};

// What is made of one kind of data.
struct NewRun {
  MachineFacts machine;
  std::vector<std::string> seen;  // what was found in the data, a line each
  Recipe recipe;
  std::vector<std::string> next;  // the commands that follow, in order
};
using NewRunMaker = NewRun (*)(const NewOptions& options, const RunNames& names);
// translation, images, text.
const Catalogue<NewRunMaker>& new_run_makers();

struct WrittenRun {
  std::vector<std::string> seen;  // of data and machine, a line each
  std::string config;             // the file
  std::vector<std::string> next;  // commands
};

// Reads data and machine, chooses, and writes the configuration. ConfigError: no such kind, or the
// file is there; DataError: data that cannot be used.
WrittenRun write_new_run(const std::string& kind, const NewOptions& options);

}  // namespace lockstep
