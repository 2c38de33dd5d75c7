// What a run on these images on this machine should be: each rule a function of facts, on what was
// measured (benchmarks/notes) or published.
#pragma once

#include "recipe/facts.h"
#include "recipe/images_facts.h"
#include "recipe/recipe.h"
#include "recipe/run_names.h"
#include "recipe/yardstick.h"

namespace lockstep {

// Epochs beyond which a network of this kind gains little.
int64_t most_epochs(const ImagesFacts& facts);

struct NetworkChoice {
  ImageNetwork network;
  std::string why;
};
NetworkChoice choose_network(const ImagesFacts& facts, const MachineFacts& machine,
                             const Budget& budget);

struct ImagesLength {
  int64_t batch = 0;   // images of a step
  int64_t epochs = 0;  // 0: less than one, so `steps` counts
  int64_t steps = 0;   // in all
  double seconds = 0;  // of all steps, estimated
};
ImagesLength choose_images_length(const ImagesFacts& facts, const ImageNetwork& network,
                                  const MachineFacts& machine, const Budget& budget);

// False for letters and digits, which are others in the mirror: grey images whose classes are named
// so.
bool may_be_mirrored(const ImagesFacts& facts);

// Shorter side that `lockstep prepare images` keeps at most; 0: as they are.
int64_t choose_kept_side(const ImagesFacts& facts, const ImageNetwork& network);

Recipe images_recipe(const ImagesFacts& facts, const MachineFacts& machine, const Budget& budget,
                     const RunNames& names);

// prepare (where it is still to be done), launch, evaluate, classify: three of them.
std::vector<std::string> images_commands(const ImagesFacts& facts, const ImageNetwork& network,
                                         const ImagesInput& input, const RunNames& names);

}  // namespace lockstep
