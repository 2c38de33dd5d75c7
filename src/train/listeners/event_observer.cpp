#include "train/listeners/event_observer.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "metrics/confusion_pixels.h"
#include "train/listeners/sample_pictures.h"
#include "train/records/step_figures.h"

namespace lockstep {

EventObserver::EventObserver(const fs::path& folder, EventContent content)
    : writer_(folder), content_(std::move(content)), imagenet_(content_.style == "imagenet") {}

void EventObserver::on_start(int64_t first_step, int64_t) {
  writer_.text("run/config", first_step - 1, "```toml\n" + content_.config + "```");
  writer_.session_start(content_.hyper);
  writer_.flush();
}

void EventObserver::on_step(const StepRecord& r) {
  for_each_figure(r, [&](const char* tag, auto value) {
    writer_.scalar(tag, r.step, static_cast<double>(value));
  });
  if (imagenet_) {
    writer_.scalar("Loss/train", r.step, r.loss);
    writer_.scalar("Accuracy/train", r.step, 100 * r.accuracy);
  }
  if (content_.histograms != nullptr && content_.histograms->is_due(r.step)) {
    for (const NamedHistogram& h : content_.histograms->take()) {
      writer_.histogram(h.tag, r.step, h.values);
    }
  }
}

void EventObserver::on_evaluation(const EvaluationRecord& r) {
  for (const auto& [name, value] : r.result->metrics) {
    writer_.scalar("eval/" + name, r.step, value);
    if (imagenet_ && name == "loss") writer_.scalar("Loss/Val", r.step, value);
    if (imagenet_ && name == "acc1") writer_.scalar("Accuracy/Val", r.step, value);
  }
  write_samples(r);
  writer_.flush();
}

// Writes samples as a table in text, and as pictures where there are images or classes.
void EventObserver::write_samples(const EvaluationRecord& r) {
  std::string table = "| source | reference | output |\n| --- | --- | --- |\n";
  auto cell = [](std::string text) {
    for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
      text.replace(at, 1, "\\|");
    }
    return text;
  };
  for (const Sample& s : r.result->samples) {
    table += "| " + cell(s.source) + " | " + cell(s.reference) + " | " + cell(s.output) + " |\n";
  }
  if (!r.result->samples.empty()) writer_.text("eval/samples", r.step, table);
  if (const std::optional<RgbImage> grid = sample_grid(r.result->samples)) {
    writer_.image("eval/sample_images", r.step, *grid);
  }
  if (r.result->confusion) {
    writer_.image("eval/confusion", r.step, confusion_pixels(*r.result->confusion));
  }
}

// A run that a signal stopped may be resumed; one that failed does not get here.
void EventObserver::on_end(const std::string& reason) {
  if (reason != "signal") writer_.session_end(SessionStatus::kSuccess);
  writer_.flush();
}

}  // namespace lockstep
