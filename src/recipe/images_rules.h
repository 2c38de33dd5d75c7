// The rules that choose an image run for given images and a given machine. Each rule is a function
// of facts and based on measurements (benchmarks/notes) or publications.
#pragma once

#include "recipe/facts.h"
#include "recipe/images_facts.h"
#include "recipe/recipe.h"
#include "recipe/run_names.h"
#include "recipe/yardstick.h"

namespace lockstep {

// Returns the number of epochs beyond which such a network gains little.
int64_t most_epochs(const ImagesFacts& facts);

struct NetworkChoice {
  ImageNetwork network;
  std::string why;
};
NetworkChoice choose_network(const ImagesFacts& facts, const MachineFacts& machine,
                             const Budget& budget);

struct ImagesLength {
  int64_t batch = 0;   // images per step
  int64_t epochs = 0;  // 0: less than one epoch, so `steps` counts
  int64_t steps = 0;   // in total
  double seconds = 0;  // estimated for all steps
};
ImagesLength choose_images_length(const ImagesFacts& facts, const ImageNetwork& network,
                                  const MachineFacts& machine, const Budget& budget);

// Returns false if every class is named by a single letter or digit: mirrored ones are different
// signs.
bool may_be_mirrored(const ImagesFacts& facts);

// Returns the largest shorter side that `lockstep prepare images` should keep; 0: the original
// sizes.
int64_t choose_kept_side(const ImagesFacts& facts, const ImageNetwork& network);

Recipe images_recipe(const ImagesFacts& facts, const MachineFacts& machine, const Budget& budget,
                     const RunNames& names);

// Returns three commands: launch and evaluate, before them prepare, or after them classify if the
// data are already prepared.
std::vector<std::string> images_commands(const ImagesFacts& facts, const ImageNetwork& network,
                                         const ImagesInput& input, const RunNames& names);

}  // namespace lockstep
