// What `train` does with the second home of a run, checkpoint.mirror (train/mirror): looks at it
// before the run begins, goes on from it, copies to it, and waits for it at the end.
#pragma once

#include <memory>
#include <string>

#include "dist/collectives/world.h"
#include "train/config/run_config.h"
#include "train/folder/run_folder.h"
#include "train/mirror/mirror.h"
#include "train/records/observers.h"

namespace lockstep {

struct ResumeWish {
  std::string address;   // of --resume=ADDRESS; empty: none was given
  bool resumes = false;  // the run goes on, or begins where there is none
};

class SecondHome {
 public:
  // Call this on every rank: whether a checkpoint may come from elsewhere.
  void expect(const CheckpointSection& section, const ResumeWish& wish);

  // Call this on rank 0 before the run folder is made. Throws when nothing can be copied there, or
  // when it holds another run. Brings the run's files, without checkpoints, where the run goes on
  // from there. An attempt after the first trains on without it, with a warning.
  void check(const RunFolder& folder, const ResumeWish& wish, const LaunchEnvironment& environment);

  // Call this on rank 0 when the run folder is there: copying begins.
  void open(const CheckpointSection& section, const RunFolder& folder);

  // Tells the mirror of checkpoints and metrics.jsonl of what it did; nothing without a mirror.
  std::unique_ptr<Observer> observer(const RunFolder& folder) const;

  // Lets it finish and writes what it did since.
  void finish(const RunFolder& folder, bool hurried);

 private:
  friend void bring_checkpoint(World& world, const SecondHome& home, const RunFolder& folder);

  std::string mirror_address_, brings_;  // brings_: the same on all ranks; empty: nothing
  bool fetches_ = false;                 // of rank 0: there is something to fetch
  bool must_ = false;                    // and without it the run cannot go on
  std::unique_ptr<Mirror> mirror_;
};

// Brings the newest checkpoint of the address to rank 0's folder, unless a rank has one as new. The
// other ranks wait, however long it takes. Collective.
void bring_checkpoint(World& world, const SecondHome& home, const RunFolder& folder);

}  // namespace lockstep
