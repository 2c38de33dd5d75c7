// Decides which images are in which step: a pure function of (seed, epoch), equal on every rank.
//
// Either every rank draws from all images, or each place (the ranks that see one data folder) draws
// from the images of its own shards only. Then a place with a share p of all images has the share p
// of every step, so that all places come to the end of an epoch together. In both, each image
// occurs once in an epoch.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "data/steps/rank_shares.h"
#include "data/steps/step_size.h"

namespace lockstep {

// Whose images the places draw.
struct ImagePlaces {
  std::vector<int> of_rank;                  // by rank: its place
  std::vector<std::vector<int32_t>> images;  // by place, ascending; each image is of one place
};

// Gives each shard to one of the places that hold it, so that images are spread in proportion to
// the ranks of the places. `holders`: by shard, ascending, not empty; `images`: by shard; `ranks`:
// by place. Returns the place of each shard.
std::vector<int> assign_shards(const std::vector<std::vector<int>>& holders,
                               const std::vector<int64_t>& images, const std::vector<int>& ranks);

// Thread-safe.
class ImageEpochs {
 public:
  struct Options {
    uint64_t seed = 1;
    int64_t step_images = 1;  // of a full step, over all ranks
  };
  ImageEpochs(int64_t images, const Options& options);      // all draw from all
  ImageEpochs(ImagePlaces places, const Options& options);  // each place from its own

  int64_t images() const { return images_; }
  // Call it before the first batch: the first steps of `epoch` were of other sizes.
  void continue_epoch(int64_t epoch, std::vector<EpochStretch> done);
  int64_t full_steps(int64_t epoch) const { return steps_.full_steps(epoch, images_); }
  // With places, up to one image a place less than Options::step_images.
  int64_t images_in_step(int64_t epoch, int64_t step_in_epoch) const;
  // Returns the images of part `part` of `parts`, in their order; may be empty.
  std::vector<int64_t> part(int64_t epoch, int64_t step_in_epoch, int64_t part,
                            const StepParts& parts);
  // Returns the fewest images that a part of that step has when all parts (ranks * micro-batches)
  // are equal.
  int64_t smallest_part(int64_t epoch, int64_t step_in_epoch, int64_t parts) const;

 private:
  EpochSteps::Range range_of(std::size_t place, int64_t epoch, int64_t step_in_epoch) const;
  const std::vector<int32_t>& order(int64_t epoch, std::size_t place);

  Options options_;
  EpochSteps steps_;
  ImagePlaces places_;  // one that all ranks are of, or several
  bool apart_;          // whether places draw for themselves
  int64_t images_ = 0;
  std::mutex mutex_;  // the prefetch thread and the trainer both ask
  std::map<std::pair<int64_t, std::size_t>, std::vector<int32_t>> orders_;  // by epoch and place
};

}  // namespace lockstep
