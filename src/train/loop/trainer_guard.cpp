// What a Trainer does about steps and ranks that are wrong: docs/training.md#guards.
#include "base/log.h"
#include "train/checkpoint/bad_batches.h"
#include "train/loop/trainer.h"

namespace lockstep {

// From one seed processors of different kinds may draw numbers that differ in their last bits.
// Collective.
void Trainer::share_initial_weights() {
  const std::vector<Replica> arrays = {{"the initial weights", task_.parameters().values()}};
  UnequalRanks unequal = find_unequal(world_, arrays);
  if (unequal.empty()) return;
  unequal.good = 0;
  log_info("{}: all ranks begin with those of rank 0", unequal.text);
  mend(world_, arrays, unequal);
  task_.parameters().refresh_low();
}

// Finds ranks whose bits are not those of the others, before anything is saved of them. Collective.
void Trainer::check_weights(bool may_mend) {
  const std::vector<Replica> arrays = state_->replicas();
  const UnequalRanks unequal = find_unequal(world_, arrays);
  if (unequal.empty()) return;
  may_mend = may_mend && config_.guard.unequal_ranks == "mend" &&
             (unequal.good >= 0 || !config_.comm.local.is_on());
  if (!may_mend || state_->guard.interventions().is_too_many()) throw unequal_error(unequal);
  const int64_t step = state_->position.step;
  if (unequal.good < 0) {
    intervene({step, "unequal_ranks", "roll_back", unequal.text});
    return;
  }
  log_warning("step {}: {}; they get those of rank {}", step, unequal.text, unequal.good);
  mend(world_, arrays, unequal);
  task_.parameters().refresh_low();
  state_->frozen.remember();
  intervene({step, "unequal_ranks", "mend", unequal.text});
}

void Trainer::intervene(const InterventionRecord& record) {
  if (record.action == "roll_back") roll_back(record);
  for (auto& o : observers_) o->on_intervention(record);
}

// Takes weights, optimizer and statistics of the newest checkpoint. The run stands where it stood:
// the steps since then keep their numbers, and their batches are passed over. Collective.
void Trainer::roll_back(const InterventionRecord& record) {
  finish_saving();
  const std::optional<SharedCheckpoint> checkpoint =
      options_.benchmark_steps > 0 ? std::nullopt
                                   : newest_of_all_ranks(world_, folder_, keeps_folder_);
  if (!checkpoint) {
    const std::string text =
        fmt::format("step {}: {}; there is no checkpoint to go back to", record.step, record.why);
    if (record.kind == "unequal_ranks") throw MachineError("{}", text);
    throw DivergedError("{}", text);
  }
  const RunPosition position = state_->position;
  const double interventions = state_->guard.interventions().recent();
  state_->restore(*checkpoint);
  state_->position = position;
  state_->guard.interventions().set_recent(interventions);
  log_warning("step {}: {}; went back to the weights of {}", record.step, record.why,
              checkpoint->path);
}

void Trainer::keep(const StepBatch& batch) const {
  if (!config_.guard.keep_batches || options_.benchmark_steps > 0) return;
  keep_batch(folder_.bad_batches(), state_->position.step + 1, world_.rank(), batch.micro_batches);
}

}  // namespace lockstep
