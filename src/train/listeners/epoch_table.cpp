#include "train/listeners/epoch_table.h"

#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/output_file.h"
#include "base/text.h"

namespace lockstep {

namespace {

std::string number_text(double value) { return fmt::format("{:.8g}", value); }

void append_line(const fs::path& path, const std::string& line) {
  std::ofstream file(path, std::ios::app);
  file << line << '\n' << std::flush;
  if (!file) throw write_failure(path, errno);
}

}  // namespace

EpochTable::EpochTable(const fs::path& path, std::vector<std::string> metrics, MetricsLog& log)
    : path_(path), metrics_(std::move(metrics)), log_(log) {
  if (fs::exists(path)) return;
  std::string header =
      "epoch,step,steps,train_loss,train_accuracy,learning_rate,train_seconds,"
      "samples_per_second";
  for (const std::string& metric : metrics_) header += ",eval_" + metric;
  append_line(path, header);
}

void EpochTable::on_step(const StepRecord& r) {
  if (now_ && now_->epoch != r.epoch) finish();
  if (!now_) now_ = Epoch{.epoch = r.epoch};
  const auto targets = static_cast<double>(r.targets);
  now_->step = r.step;
  ++now_->steps;
  now_->items += r.items;
  now_->targets += targets;
  now_->loss += r.loss * targets;
  now_->accuracy += r.accuracy * targets;
  now_->lr = r.lr;
  now_->seconds += r.seconds;
  now_->whole = r.step_in_epoch + 1 == r.steps_in_epoch;
}

// The evaluation at the end of an epoch counts, else the last one within it.
void EpochTable::on_evaluation(const EvaluationRecord& r) {
  if (!now_ || now_->epoch != r.epoch) return;
  now_->evaluation = *r.result;
  if (now_->whole) finish();
}

void EpochTable::on_end(const std::string&) { finish(); }

void EpochTable::finish() {
  if (!now_) return;
  const Epoch e = *now_;
  now_.reset();
  const double rate = static_cast<double>(e.items) / e.seconds;
  nlohmann::ordered_json event = {{"epoch", e.epoch},
                                  {"step", e.step},
                                  {"steps", e.steps},
                                  {"whole", e.whole},
                                  {"train/loss", e.loss / e.targets},
                                  {"train/accuracy", e.accuracy / e.targets},
                                  {"train/learning_rate", e.lr},
                                  {"time/epoch_seconds", e.seconds},
                                  {"speed/items_per_second", rate}};
  std::string line = fmt::format("{},{},{}", e.epoch, e.step, e.steps);
  for (double value : {e.loss / e.targets, e.accuracy / e.targets, e.lr, e.seconds, rate}) {
    line += "," + number_text(value);
  }
  for (const std::string& metric : metrics_) {
    line += ",";
    if (!e.evaluation || !e.evaluation->metrics.contains(metric)) continue;
    const double value = e.evaluation->metrics.at(metric);
    line += number_text(value);
    event["eval/" + metric] = value;
  }
  append_line(path_, line);
  log_.on_epoch(event);
}

}  // namespace lockstep
