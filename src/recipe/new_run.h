// Implements `lockstep new`: writes a configuration that fits given data.
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
  std::vector<std::string> data;  // the words of the command line
  std::string out;                // the configuration file; empty: named after the data
  Budget budget;
  std::vector<std::string> dev, test;  // for translation: source and target, a table, or none
  std::string source_language;
  std::string images_labels;    // for images without class folders
  bool images_by_name = false;  // for those: their names say the classes
  TextColumns columns;          // for texts and tables of pairs; empty: determined from the data
  bool values = false;          // for texts: labels are numbers to predict
  std::string model;            // for texts: the pretrained model; empty: chosen
};

// The result for one kind of data.
struct NewRun {
  MachineFacts machine;
  std::vector<std::string> seen;  // what was found in the data, one line each
  Recipe recipe;
  std::vector<std::string> next;  // the commands to run next, in order
};
using NewRunMaker = NewRun (*)(const NewOptions& options, const RunNames& names);
// Contains the kinds translation, images and text.
const Catalogue<NewRunMaker>& new_run_makers();

struct WrittenRun {
  std::vector<std::string> seen;  // about data and machine, one line each
  std::string config;             // the file that was written
  std::vector<std::string> next;  // the commands to run next
};

// Reads the data, measures the machine, chooses and writes the configuration. Throws ConfigError
// when there is no such kind or the file exists, and DataError for data that cannot be used.
WrittenRun write_new_run(const std::string& kind, const NewOptions& options);

}  // namespace lockstep
