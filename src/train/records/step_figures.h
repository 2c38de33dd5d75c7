// Lists the figures of a step under their tags (docs/run-folder.md#tags), in the order of
// metrics.jsonl: one list for every log.
#pragma once

#include "metrics/perplexity.h"
#include "train/records/observers.h"

namespace lockstep {

// Calls f(tag, value) for each figure that the step has; counts are int64_t, all others double.
template <typename F>
void for_each_figure(const StepRecord& r, const F& f) {
  f("train/loss", r.loss);
  f("train/nll", r.nll);
  f("train/perplexity", perplexity(r.nll));
  f("train/accuracy", r.accuracy);
  f("train/learning_rate", r.lr);
  f("train/gradient_norm", r.gradient_norm);
  f("speed/targets_per_second", static_cast<double>(r.targets) / r.seconds);
  f("batch/targets", r.targets);
  f("batch/sources", r.sources);
  f("batch/items", r.items);
  f("time/step_seconds", r.seconds);
  f("time/compute_seconds", r.compute_seconds);
  f("time/wait_seconds", r.wait_seconds);
  f("time/data_seconds", r.data_seconds);
  f("time/forward_seconds", r.forward_seconds);
  f("time/backward_seconds", r.backward_seconds);
  f("time/optimizer_seconds", r.optimizer_seconds);
  f("time/other_seconds", r.other_seconds);
  f("time/hidden_seconds", r.hidden_seconds);
  f("comm/sent_bytes", r.sent_bytes);
  f("comm/payload_sent_bytes", r.payload_sent_bytes);
  f("comm/received_bytes", r.received_bytes);
  if (r.top5) f("train/top5", *r.top5);
  if (r.loss_scale) f("train/loss_scale", *r.loss_scale);
  if (r.loss_scale || r.skipped_steps > 0) f("train/skipped_steps", r.skipped_steps);
}

}  // namespace lockstep
