#include "train/loop/step_books.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include "base/clock.h"
#include "dist/account/progress.h"
#include "train/records/rank_times.h"

namespace lockstep {

namespace {

constexpr std::size_t kTotals = sizeof(StepTotals) / sizeof(double);
static_assert(sizeof(StepTotals) == kTotals * sizeof(double));
static_assert(std::is_trivially_copyable_v<StepTotals>);

}  // namespace

void StepTotals::add(const Batch& batch) {
  sources += static_cast<double>(batch.sources);
  items += static_cast<double>(batch.items);
  targets += static_cast<double>(batch.targets);
}

void StepTotals::add(std::span<const LossParts> parts) {
  if (parts.empty()) return;
  constexpr int64_t kFigures = 4;
  std::vector<torch::Tensor> figures;
  for (const LossParts& p : parts) {
    for (const torch::Tensor& t :
         {p.loss, p.nll, p.correct, p.top5.defined() ? p.top5 : p.correct}) {
      figures.push_back(t.detach().to(torch::kDouble));
    }
  }
  const torch::Tensor read = torch::stack(figures).to(torch::kCPU);
  const double* at = read.const_data_ptr<double>();
  for (const LossParts& p : parts) {
    loss += at[0];
    nll += at[1];
    correct += at[2];
    if (p.top5.defined()) top5 += at[3];
    at += kFigures;
  }
}

void StepTotals::add(const StopWish& wish) {
  out_of_time += wish.out_of_time ? 1 : 0;
  interrupted += wish.interrupted ? 1 : 0;
  trace_steps += static_cast<double>(wish.trace_steps);
}

StopWish StepTotals::wish() const {
  return {.out_of_time = out_of_time > 0,
          .interrupted = interrupted > 0,
          .trace_steps = static_cast<int64_t>(trace_steps)};
}

StepBooks::StepBooks(TrainingState& state) : state_(state), step_(state.position.step + 1) {
  state_.world.progress().begin_step(step_, state_.position.epoch);
}

std::optional<StepBatch> StepBooks::fetch(const StepInputs& inputs) {
  RankProgress& progress = state_.world.progress();
  progress.enter(Phase::kData);
  const auto begin = std::chrono::steady_clock::now();
  std::optional<StepBatch> batch = inputs.next_batch();
  if (batch) batch->uploads.await();
  data_seconds_ = seconds_since(begin);
  wish_ = inputs.wish();
  progress.enter(Phase::kOther);
  start_ = std::chrono::steady_clock::now();
  before_ = account();
  return batch;
}

void StepBooks::write_message(StepPass& pass) const {
  pass.own.add(wish_);
  const auto ranks = static_cast<std::size_t>(state_.world.size());
  const auto rank = static_cast<std::size_t>(state_.world.rank());
  pass.message.assign(kTotals + ranks * kRankTimesFields, 0);
  std::memcpy(pass.message.data(), &pass.own, sizeof(StepTotals));
  put_times(state_.world.progress().account().ended(),
            std::span(pass.message).subspan(kTotals + rank * kRankTimesFields, kRankTimesFields));
}

void StepBooks::read_message(StepPass& pass) const {
  std::memcpy(static_cast<void*>(&pass.totals), pass.message.data(), sizeof(StepTotals));
}

StepBooks::Account StepBooks::account() const {
  StepAccount& account = state_.world.progress().account();
  return {.times = account.so_far(),
          .sent = account.moved().sent(),
          .received = account.moved().received()};
}

StepOutcome StepBooks::close_given_up(const StepPass& pass) const {
  StepOutcome out{.updated = false, .counts = false, .given_up = true};
  out.stop = {.interrupted = true};
  out.times_before = take_times(std::span(pass.message).subspan(kTotals));
  return out;
}

StepOutcome StepBooks::close(const StepBatch& batch, const StepPass& pass) const {
  const bool local = state_.local.is_local(step_);
  StepOutcome out{.updated = pass.verdict == StepVerdict::kUpdate, .stop = pass.totals.wish()};
  out.counts = out.updated || local;
  out.times_before = take_times(std::span(pass.message).subspan(kTotals));
  out.left = {.step = step_,
              .targets = static_cast<int64_t>(pass.own.targets),
              .all_targets = batch.targets,
              .loss = out.updated ? pass.own.loss : 0,
              .average_decay = pass.average_decay,
              .stop = local ? wish_ : out.stop};
  if (pass.verdict == StepVerdict::kPassOver || pass.verdict == StepVerdict::kRollBack) {
    const bool back = pass.verdict == StepVerdict::kRollBack;
    out.intervention = {
        .step = step_, .action = back ? "roll_back" : "skip", .why = state_.guard.why()};
  }
  if (out.updated) out.record = record(batch, pass);
  return out;
}

StepOutcome StepBooks::close_unfinished(const StepBatch& batch, const StepPass& pass) const {
  StepOutcome out{.out_of_memory = true, .updated = false, .counts = false};
  out.stop = pass.totals.wish();
  for (const std::unique_ptr<Batch>& micro_batch : batch.micro_batches) {
    if (pass.own.out_of_memory > 0) {
      out.too_many_items = std::max(out.too_many_items, micro_batch->items);
    }
  }
  return out;
}

StepRecord StepBooks::record(const StepBatch& batch, const StepPass& pass) const {
  const double seconds = seconds_since(start_);
  state_.world.progress().enter(Phase::kOther);
  const StepTotals& totals = pass.totals;
  StepRecord out{.step = step_,
                 .total_steps = state_.total_steps,
                 .epoch = batch.epoch,
                 .step_in_epoch = batch.step_in_epoch,
                 .steps_in_epoch = batch.steps_in_epoch,
                 .loss = pass.signs.loss,
                 .nll = totals.nll / totals.targets,
                 .accuracy = totals.correct / totals.targets,
                 .lr = pass.size.lr,
                 .gradient_norm = pass.signs.gradient_norm,
                 .loss_scale = pass.loss_scale,
                 .skipped_steps = state_.guard.skipped_steps(),
                 .targets = batch.targets,
                 .sources = static_cast<int64_t>(totals.sources),
                 .items = static_cast<int64_t>(totals.items),
                 .seconds = seconds + data_seconds_,
                 .compute_seconds = seconds - pass.wait_seconds,
                 .wait_seconds = pass.wait_seconds,
                 .data_seconds = data_seconds_,
                 .sent_bytes = pass.reduced.bytes,
                 .local = state_.local.is_local(step_)};
  if (state_.task.counts_top5()) out.top5 = totals.top5 / totals.targets;
  const Account now = account();
  const RankTimes &before = before_.times, &after = now.times;
  out.forward_seconds = after.forward - before.forward;
  out.backward_seconds = after.backward - before.backward;
  out.optimizer_seconds = after.optimizer - before.optimizer;
  if (state_.world.progress().account().has_device_clock()) {
    // The device has yet to do the update; the one before it was done within this step.
    out.wait_seconds = after.wait - before.wait;
    out.compute_seconds = std::max(0.0, seconds - out.wait_seconds);
    out.optimizer_seconds =
        std::max(0.0, out.compute_seconds - out.forward_seconds - out.backward_seconds);
  }
  out.other_seconds = std::max(0.0, out.compute_seconds - out.forward_seconds -
                                        out.backward_seconds - out.optimizer_seconds);
  out.hidden_seconds = after.hidden - before.hidden;
  out.payload_sent_bytes = now.sent - before_.sent;
  out.received_bytes = now.received - before_.received;
  return out;
}

}  // namespace lockstep
