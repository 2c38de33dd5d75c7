#include "train/listeners/imagenet_lines.h"

#include <algorithm>
#include <cctype>

#include "base/log.h"
#include "base/text.h"

namespace lockstep {

std::string epoch_line(const StepRecord& step, const StepRecord& epoch) {
  auto percent = [](std::optional<double> share) { return 100 * share.value_or(0); };
  return fmt::format(
      "Epoch: [{}][{}/{}] Loss {:.4e} ({:.4e}) Acc@1 {:.2f} ({:.2f}) Acc@5 {:.2f} ({:.2f})",
      step.epoch, step.step_in_epoch, step.steps_in_epoch, step.loss, epoch.loss,
      percent(step.accuracy), percent(epoch.accuracy), percent(step.top5), percent(epoch.top5));
}

std::string test_line(const EvaluationProgress& batch, const EvaluationProgress& all) {
  auto mean = [](const EvaluationProgress& p, double sum) {
    return sum / static_cast<double>(std::max<int64_t>(1, p.items));
  };
  auto percent = [&](const EvaluationProgress& p, int64_t count) {
    return 100 * mean(p, static_cast<double>(count));
  };
  return fmt::format(
      "Test: [{}/{}] Loss {:.4e} ({:.4e}) Acc@1 {:.2f} ({:.2f}) Acc@5 {:.2f} ({:.2f})", batch.batch,
      batch.batches, mean(batch, batch.loss), mean(all, all.loss), percent(batch, batch.correct),
      percent(all, all.correct), percent(batch, batch.top5), percent(all, all.top5));
}

std::string split_title(const std::string& split) {
  std::string title = split;
  if (!title.empty()) title[0] = static_cast<char>(std::toupper(title[0]));
  return title;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

ImagenetLines::ImagenetLines(int64_t every, const std::string& split)
    : every_(every), title_(split_title(split)) {}

void ImagenetLines::on_start(int64_t, int64_t) { start_ = std::chrono::steady_clock::now(); }

void ImagenetLines::on_step(const StepRecord& record) {
  if (record.epoch != epoch_) {
    sum_ = {};
    top5_sum_ = 0;
    epoch_ = record.epoch;
  }
  const auto images = static_cast<double>(record.targets);
  sum_.targets += record.targets;
  sum_.loss += record.loss * images;
  sum_.accuracy += record.accuracy * images;
  top5_sum_ += record.top5.value_or(0) * images;
  const int64_t done = record.step_in_epoch + 1;
  if (done % every_ != 0 && done != record.steps_in_epoch) return;
  const auto all = static_cast<double>(sum_.targets);
  StepRecord mean;
  mean.loss = sum_.loss / all;
  mean.accuracy = sum_.accuracy / all;
  mean.top5 = top5_sum_ / all;
  log_info("{}", epoch_line(record, mean));
  if (done < record.steps_in_epoch) return;
  log_info(" * Train Acc@1 {:.3f} Train Acc@5 {:.3f}", 100 * mean.accuracy, 100 * *mean.top5);
}

void ImagenetLines::on_evaluation_batch(const EvaluationProgress& progress) {
  if (progress.batch == 0) tested_ = {};
  tested_.items += progress.items;
  tested_.correct += progress.correct;
  tested_.top5 += progress.top5;
  tested_.loss += progress.loss;
  const int64_t done = progress.batch + 1;
  if (done % every_ == 0 || done == progress.batches) log_info("{}", test_line(progress, tested_));
}

void ImagenetLines::on_evaluation(const EvaluationRecord& record) {
  const auto& metrics = record.result->metrics;
  log_info(" * {0} Acc@1 {1:.3f} {0} Acc@5 {2:.3f}", title_, metrics.at("acc1"),
           metrics.at("acc5"));
  auto broken = metrics.find("broken");
  if (broken != metrics.end()) log_warning("{} broken images left out", broken->second);
}

void ImagenetLines::on_checkpoint(const CheckpointRecord& record) {
  log_info("saved {} ({}, {:.2f} s)", record.name, short_bytes(static_cast<double>(record.bytes)),
           record.write_seconds);
}

void ImagenetLines::on_end(const std::string& reason) {
  if (reason == "signal") return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  log_info("Training complete in: {}", clock_text(elapsed.count()));
}

}  // namespace lockstep
