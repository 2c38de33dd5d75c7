#include "launch/plan/plan_model.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/statistics.h"
#include "base/text.h"

namespace lockstep {

namespace {

constexpr double kSumBytes = 7 * sizeof(double);  // loss and counts, once per step

// The share of a large exchange's time that its transfer may take without showing against the
// delays.
constexpr double kUnseen = 0.1;

}  // namespace

bool hides_transfer(const ExchangeTiming& small, const ExchangeTiming& large) {
  return large.seconds - small.seconds < kUnseen * large.seconds;
}

Link fit_link(const ExchangeTiming& small, const ExchangeTiming& large, int hosts) {
  if (hosts < 2) throw MachineError("an exchange among {} hosts has no link to fit", hosts);
  const bool noise = large.bytes <= small.bytes || large.seconds < small.seconds * 0.6;
  if (noise || large.seconds <= 0) {
    throw MachineError(
        "an exchange of {} took {:.3f} ms and one of {} {:.3f} ms: no bandwidth can be fitted",
        short_bytes(small.bytes), small.seconds * 1e3, short_bytes(large.bytes),
        large.seconds * 1e3);
  }
  const double slope = std::max(large.seconds - small.seconds, kUnseen * large.seconds) /
                       (large.bytes - small.bytes);
  const double constant = std::max(0.0, small.seconds - slope * small.bytes);
  return {.latency_seconds = constant / exchange_delays(hosts),
          .bytes_per_second = exchange_bytes(1, hosts) / slope,
          .cpu_seconds_per_byte = std::max(0.0, large.cpu_seconds / large.bytes)};
}

double last_arrival_seconds(const std::vector<ReadyBucket>& buckets, int hosts, const Link& link,
                            int lanes) {
  std::vector<double> lane_free(static_cast<std::size_t>(std::max(1, lanes)), 0.0);
  double link_free = 0, last = 0;
  for (const ReadyBucket& bucket : buckets) {
    auto lane = std::min_element(lane_free.begin(), lane_free.end());
    const double start = std::max(bucket.ready_seconds, *lane);
    link_free =
        std::max(start, link_free) + exchange_bytes(bucket.bytes, hosts) / link.bytes_per_second;
    *lane = link_free + exchange_delays(hosts) * link.latency_seconds;
    last = std::max(last, *lane);
  }
  return last;
}

namespace {

double median_of(const RunMeasurement& m, double MeasuredStep::*part) {
  std::vector<double> values;
  for (const MeasuredStep& s : m.steps) values.push_back(s.*part);
  return median(std::move(values));
}

// Returns the time until the last bucket is complete: that of the forward and backward passes.
double pass_seconds(const RunMeasurement& m) {
  const double compute = median_of(m, &MeasuredStep::compute);
  return m.buckets.empty() ? compute : std::min(compute, m.buckets.back().ready_seconds);
}

double targets_of_rank(const RunMeasurement& m) {
  std::vector<double> values;
  for (const MeasuredStep& s : m.steps) values.push_back(static_cast<double>(s.targets));
  return median(std::move(values)) / m.of_ranks;
}

}  // namespace

double ComputeModel::idle_link_seconds() const {
  const double hidden = ready_before_end.empty() ? 0 : ready_before_end.front();
  return data_seconds + measured_pass_seconds - hidden + update_seconds;
}

ComputeModel make_compute_model(const RunMeasurement& whole, const RunMeasurement& half) {
  ComputeModel out;
  out.measured_pass_seconds = pass_seconds(whole);
  const double targets = targets_of_rank(whole);
  out.seconds_per_target = out.measured_pass_seconds / targets;
  if (!half.steps.empty() && targets > targets_of_rank(half)) {
    const double slope =
        (out.measured_pass_seconds - pass_seconds(half)) / (targets - targets_of_rank(half));
    // Noise may give a negative intercept or slope; neither is possible.
    out.seconds_per_target = std::clamp(slope, 0.0, out.seconds_per_target);
  }
  out.fixed_seconds = out.measured_pass_seconds - out.seconds_per_target * targets;
  out.update_seconds =
      std::max(0.0, median_of(whole, &MeasuredStep::compute) - out.measured_pass_seconds);
  out.data_seconds = median_of(whole, &MeasuredStep::data);
  out.local_wait_seconds = median_of(whole, &MeasuredStep::wait);
  out.targets_per_step = whole.targets_per_step;
  out.gradient_bytes = static_cast<double>(whole.gradient_bytes);
  for (const MeasuredBucket& b : whole.buckets) {
    out.bucket_bytes.push_back(static_cast<double>(b.bytes));
    out.ready_before_end.push_back(std::max(0.0, out.measured_pass_seconds - b.ready_seconds));
  }
  return out;
}

ComputeModel compute_model_from(double step_seconds, const RunMeasurement& facts) {
  ComputeModel out;
  out.measured_pass_seconds = step_seconds;
  out.targets_per_step = facts.targets_per_step;
  out.seconds_per_target = step_seconds / (facts.targets_per_step / facts.of_ranks);
  out.gradient_bytes = static_cast<double>(facts.gradient_bytes);
  constexpr double kBucketBytes = 4e6;  // the default of comm.bucket_megabytes
  const auto count = static_cast<int>(std::ceil(out.gradient_bytes / kBucketBytes));
  for (int b = 0; b < count; ++b) {
    out.bucket_bytes.push_back(out.gradient_bytes / count);
    out.ready_before_end.push_back(step_seconds * 2 / 3 * (1 - (b + 1.0) / count));
  }
  return out;
}

namespace {

// Adds the exchange of gradients in every step, during the backward pass, and of the step's
// figures, which leave at its end, beside what of the gradients is still under way.
void add_gradient_exchange(const ComputeModel& compute, const Scenario& s, double pass,
                           StepPrediction& out) {
  // Ready times are as measured, stretched as the last micro-batch's pass is.
  const double micro_pass = pass / s.accumulate;
  const double stretch = micro_pass / compute.measured_pass_seconds;
  std::vector<ReadyBucket> buckets;
  for (std::size_t b = 0; b < compute.bucket_bytes.size(); ++b) {
    buckets.push_back(
        {compute.bucket_bytes[b] * s.wire_factor, pass - compute.ready_before_end[b] * stretch});
    out.exchange += exchange_seconds(buckets.back().bytes, s.hosts, s.link);
    out.sent_bytes += exchange_bytes(buckets.back().bytes, s.hosts);
  }
  buckets.push_back({kSumBytes, pass});
  const double last = last_arrival_seconds(buckets, s.hosts, s.link, s.lanes);
  out.wait += std::max(0.0, last - pass);
}

// Adds the averaging of weights every local_steps steps, which nothing hides.
void add_weight_exchange(const ComputeModel& compute, const Scenario& s, StepPrediction& out) {
  const double bytes = compute.gradient_bytes * s.wire_factor;
  const double share = 1 / static_cast<double>(s.local_steps);
  out.exchange += exchange_seconds(bytes, s.hosts, s.link) * share;
  out.sent_bytes += exchange_bytes(bytes, s.hosts) * share;
  out.wait += exchange_seconds(bytes, s.hosts, s.link) * share;
}

// Adds fetching the others' updated weights: h - 1 messages of 1/h of them per host.
void add_gathered_weights(const ComputeModel& compute, const Scenario& s, StepPrediction& out) {
  const double seconds = exchange_seconds(compute.gradient_bytes, s.hosts, s.link) / 2;
  out.exchange += seconds;
  out.sent_bytes += exchange_bytes(compute.gradient_bytes, s.hosts) / 2;
  out.compute += seconds;  // counted as part of the update, as the run does
}

}  // namespace

StepPrediction predict_step(const ComputeModel& compute, const Scenario& s) {
  StepPrediction out;
  const int ranks = s.hosts * s.ranks_per_host;
  out.targets = compute.targets_per_step * s.accumulate;
  const double micro_targets = compute.targets_per_step / ranks;
  double pass = s.accumulate * (compute.fixed_seconds + compute.seconds_per_target * micro_targets);
  double update = compute.update_seconds;
  if (s.sharded) update /= ranks;
  if (s.hosts > 1 && s.local_steps == 1) {
    // The exchange takes processor time from the passes while it runs beside them.
    const double beside =
        std::min(1.0, pass / std::max(1e-9, exchange_seconds(compute.gradient_bytes * s.wire_factor,
                                                             s.hosts, s.link)));
    pass += beside * compute.gradient_bytes * s.wire_factor * s.link.cpu_seconds_per_byte /
            std::max(1, s.cores_per_host);
  }
  out.compute = pass + update;
  out.data = compute.data_seconds;
  out.wait = s.ranks_per_host > 1 ? compute.local_wait_seconds : 0;
  if (s.hosts > 1) {
    if (s.local_steps > 1) {
      add_weight_exchange(compute, s, out);
    } else {
      add_gradient_exchange(compute, s, pass, out);
    }
    if (s.sharded) add_gathered_weights(compute, s, out);
    out.sent_bytes += exchange_bytes(kSumBytes, s.hosts);
  }
  out.seconds = out.compute + out.wait + out.data;
  return out;
}

RunPrediction predict_run(const StepPrediction& step, const RunMeasurement& facts,
                          const Scenario& scenario, double evaluation_seconds) {
  const RunLength& length = facts.length;
  // The configuration's steps, divided by this scenario's factor of targets per step.
  auto steps =
      static_cast<double>(length.steps > 0 ? length.steps : length.epochs * facts.steps_in_epoch);
  steps = std::ceil(steps / scenario.accumulate);
  auto count = [](double of_steps, double every) {
    return every > 0 ? static_cast<int64_t>(std::ceil(of_steps / every)) : int64_t{0};
  };
  const double evaluation = evaluation_seconds / scenario.hosts;
  // A checkpoint that is due before the last one is written waits for it.
  const double between =
      static_cast<double>(length.checkpoint_every) / scenario.accumulate * step.seconds;
  const double held = std::max(
      facts.held_seconds, length.checkpoint_every > 0 ? facts.checkpoint_seconds - between : 0.0);
  RunPrediction out;
  auto fill = [&](double of_steps) {
    out.steps = static_cast<int64_t>(of_steps);
    out.evaluations =
        count(of_steps * scenario.accumulate, static_cast<double>(length.evaluation_every));
    out.checkpoints =
        length.checkpoint_every > 0
            ? count(of_steps * scenario.accumulate, static_cast<double>(length.checkpoint_every))
            : 1;
    out.train_seconds = of_steps * step.seconds;
    out.evaluation_seconds = static_cast<double>(out.evaluations) * evaluation;
    out.checkpoint_seconds = static_cast<double>(out.checkpoints) * held;
    out.sent_bytes = of_steps * step.sent_bytes;
  };
  fill(steps);
  if (length.minutes > 0 && out.seconds() > length.minutes * 60) {
    out.ends_early = true;
    fill(std::floor(steps * length.minutes * 60 / out.seconds()));
  }
  return out;
}

}  // namespace lockstep
