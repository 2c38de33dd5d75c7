// Writes a run folder without training: configuration, metrics, live.json, and what a test adds.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/file.h"
#include "formats/span_file.h"

namespace lockstep {

struct InventedLines {
  int64_t first = 1, last = 100, total = 100;
  double begin = 1000, step = 0.1;             // seconds
  std::string start = "start", end = "steps";  // empty `end`: none
};

// Returns lines of metrics.jsonl with an evaluation and a checkpoint at the end.
inline std::string metrics_lines(const InventedLines& a) {
  std::string out = fmt::format(R"({{"event":"{}","time":{},"first_step":{},"total_steps":{}}})",
                                a.start, a.begin, a.first, a.total) +
                    "\n";
  double now = a.begin;
  for (int64_t step = a.first; step <= a.last; ++step) {
    now += a.step;
    out +=
        fmt::format(R"({{"event":"step","time":{:.4f},"step":{},"epoch":0,"train/loss":{:.4f},)"
                    R"("train/nll":{:.4f},"train/learning_rate":0.001,"train/gradient_norm":1.25,)"
                    R"("speed/targets_per_second":10000,"batch/targets":1000,"batch/sources":900,)"
                    R"("batch/items":40,"time/step_seconds":{},"time/compute_seconds":{},)"
                    R"("time/wait_seconds":{},"time/data_seconds":{},"comm/sent_bytes":4000000}})"
                    "\n",
                    now, step, 4 - 2.0 * static_cast<double>(step) / static_cast<double>(a.total),
                    4 - 2.0 * static_cast<double>(step) / static_cast<double>(a.total), a.step,
                    0.85 * a.step, 0.1 * a.step, 0.05 * a.step);
  }
  out += fmt::format(
      R"({{"event":"evaluation","time":{:.4f},"step":{},"epoch":0,"seconds":0.5,"eval/nll":2.5}})"
      "\n"
      R"({{"event":"checkpoint","time":{:.4f},"step":{},"name":"step_{}","bytes":1000,"seconds":0.25}})"
      "\n",
      now + 0.5, a.last, now + 0.75, a.last, a.last);
  if (!a.end.empty()) {
    out +=
        fmt::format(R"({{"event":"end","time":{:.4f},"reason":"{}"}})", now + 0.75, a.end) + "\n";
  }
  return out;
}

// Writes config.toml, metrics.jsonl and live.json for two ranks, on a and b.
inline void write_invented_run(const fs::path& run, const std::string& metrics,
                               const std::string& state = "ended", double now = 2000) {
  fs::create_directories(run);
  write_file(run / "config.toml",
             "[task]\nname = \"translation\"\n[evaluation]\nmetrics = [\"nll\"]\n");
  write_file(run / "metrics.jsonl", metrics);
  write_file(run / "live.json",
             fmt::format(R"({{"version":1,"state":"{}","reason":"","time":{:.3f},"started":1000,)"
                         R"("size":2,"step":100,"unit":"tok","slowest":null,"ranks":[)"
                         R"({{"rank":0,"host":"a","step_seconds":0.1,"compute_seconds":0.085,)"
                         R"("wait_seconds":0.01,"data_seconds":0.005}},)"
                         R"({{"rank":1,"host":"b","step_seconds":0.1,"compute_seconds":0.085,)"
                         R"("wait_seconds":0.01,"data_seconds":0.005}}]}})"
                         "\n",
                         state, now));
}

// Returns spans of both ranks in steps of 100 ms; rank 1's clock is 3 s ahead. Buckets overlap each
// other and the backward pass.
inline SpanFile invented_spans(int64_t first, int64_t last, double begin) {
  SpanFile out;
  out.first_step = first;
  out.last_step = last;
  for (int rank : {0, 1}) {
    RankSpans r;
    r.rank = rank;
    r.host = rank == 0 ? "a" : "b";
    r.process = 100 + rank;
    r.clock_offset = 3.0 * rank;
    r.clock_uncertainty = 0.0002 * rank;
    r.names = {"data",      "forward",           "backward",          "wait",
               "optimizer", "gradient bucket 0", "gradient bucket 1", "batch"};
    for (int64_t step = first; step <= last; ++step) {
      const double at = begin + 0.1 * static_cast<double>(step - first) + r.clock_offset;
      const auto add = [&](SpanRow row, int name, double from, double length, int64_t bytes = 0) {
        r.spans.push_back({row, name, step, at + from, length, bytes});
      };
      add(SpanRow::kPhases, 0, 0, 0.005);
      add(SpanRow::kBackground, 7, 0.002, 0.02);
      add(SpanRow::kPhases, 1, 0.005, 0.03);
      add(SpanRow::kPhases, 2, 0.035, 0.05);
      add(SpanRow::kExchange, 5, 0.05, 0.02, 2'000'000);
      add(SpanRow::kExchange, 6, 0.06, 0.03, 2'000'000);
      add(SpanRow::kPhases, 3, 0.085, 0.01);
      add(SpanRow::kPhases, 4, 0.095, 0.005);
    }
    out.ranks.push_back(std::move(r));
  }
  return out;
}

}  // namespace lockstep
