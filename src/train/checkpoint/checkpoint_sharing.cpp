#include "train/checkpoint/checkpoint_sharing.h"

#include <unistd.h>

#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "train/parts/agreement.h"

namespace lockstep {

namespace {

// Returns the step of "step path"; -1 for an empty text.
int64_t step_of(const std::string& announcement) {
  int64_t step = -1;
  std::from_chars(announcement.data(), announcement.data() + announcement.size(), step);
  return step;
}

}  // namespace

bool keeps_checkpoints(World& world, const RunFolder& folder, bool every_machine) {
  if (world.size() == 1 || !every_machine) return world.is_leader();
  // The token's text is rank 0's own: run, attempt and process number keep the file of an earlier
  // run or of another machine from being taken for it.
  const LaunchEnvironment& environment = world.environment();
  fs::path token = folder.path() / ".rank0";
  std::string mine = fmt::format("{} {} {}", environment.run_id, environment.attempt, ::getpid());
  together(world, [&] {
    if (world.is_leader()) write_file(token, mine);
  });
  std::string wanted = world.all_gather_strings(mine).front();
  bool sees = false;
  try {
    sees = fs::exists(token) && read_file(token) == wanted;
  } catch (const Error&) {  // this process may not read it
  }
  world.barrier();
  if (world.is_leader()) {
    std::error_code ignored;
    fs::remove(token, ignored);
  }
  return world.is_leader() || (environment.local_rank == 0 && !sees);
}

std::optional<SharedCheckpoint> newest_of_all_ranks(World& world, const RunFolder& folder,
                                                    bool keeps) {
  std::string mine;
  if (keeps) {
    tidy_checkpoints(folder.checkpoints());
    if (std::optional<fs::path> newest = newest_complete_checkpoint(folder.checkpoints())) {
      mine = fmt::format("{} {}", checkpoint_step(*newest), newest->string());
    }
  }
  std::vector<std::string> all = world.all_gather_strings(mine);
  SharedCheckpoint out{.step = -1};
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (step_of(all[rank]) <= out.step) continue;
    out.step = step_of(all[rank]);
    out.holder = static_cast<int>(rank);
    out.path = all[rank].substr(all[rank].find(' ') + 1);
  }
  if (out.step < 0) return std::nullopt;
  return out;
}

RunPosition load_from_holder(World& world, const SharedCheckpoint& checkpoint,
                             CheckpointContent& content) {
  torch::NoGradGuard no_grad;
  bool holds = world.rank() == checkpoint.holder;
  std::string state;
  together(world, [&] {
    if (!holds) return;
    load_checkpoint(checkpoint.path, content);
    state = read_file(state_file(checkpoint.path));
  });
  if (world.size() == 1) return content.position;
  state = world.all_gather_strings(state)[static_cast<std::size_t>(checkpoint.holder)];
  if (!holds) read_state(state, state_file(checkpoint.path), content);
  world.broadcast(content.parameters->values(), checkpoint.holder);
  if (content.average.defined()) world.broadcast(content.average, checkpoint.holder);
  for (const torch::Tensor& buffers : {content.parameters->buffers(), content.average_buffers}) {
    if (buffers.defined() && buffers.numel() > 0) world.broadcast(buffers, checkpoint.holder);
  }
  for (const StateArray& array : content.optimizer.arrays) {
    world.broadcast(array.data, checkpoint.holder);
  }
  for (const StateArray& array : content.outer) world.broadcast(array.data, checkpoint.holder);
  return content.position;
}

}  // namespace lockstep
