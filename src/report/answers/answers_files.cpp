// Answers questions 7, 8 and 9: the training set, the files of a checkpoint, its size.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "report/answers/answers.h"
#include "report/draw/figure_text.h"
#include "report/run/read_json.h"

namespace lockstep {

namespace {

std::string counted(double value) { return with_commas(std::llround(value)); }

std::string file_meaning(const std::string& name) {
  if (name == "weights.safetensors") return "the trained weights, and running statistics of norms";
  if (name == "average.safetensors") return "the moving average of the weights, which is evaluated";
  if (name == "optimizer.safetensors") return "the optimizer's arrays: moments, momentum";
  if (name == "outer.safetensors") return "momentum of DiLoCo's outer optimizer";
  if (name == "state.json") return "where the run stands: step, epoch, best evaluations";
  if (name.starts_with("rank_")) return "what that rank alone has";
  return "";
}

std::string vocabulary_text(const VocabularyFacts& v) {
  const std::string read = v.pairs == v.of_pairs
                               ? "all pairs"
                               : fmt::format("the first {} pairs, in random order",
                                             counted(static_cast<double>(v.pairs)));
  return fmt::format(
      "Vocabulary: {} of its {} entries occur ({}), {} of {} tokens are unknown ({}), "
      "over {}.",
      with_commas(v.used), with_commas(v.size),
      percent(static_cast<double>(v.used) / static_cast<double>(std::max<int64_t>(1, v.size))),
      with_commas(v.unknown), with_commas(v.tokens),
      percent(static_cast<double>(v.unknown) / static_cast<double>(std::max<int64_t>(1, v.tokens))),
      read);
}

// Returns the items of an epoch, from the steps themselves; 0 when no epoch was complete.
double items_of_epoch(const RunHistory& history) {
  double items = 0;
  if (history.steps.empty()) return 0;
  const int64_t first = history.steps.front().epoch;
  for (const StepRow& row : history.steps) {
    if (row.epoch != first) return items;
    items += row.items;
  }
  return 0;
}

void add_splits(const ReadJson& manifest, Answer& out) {
  TextTable table{{"split"}, {}, "l"};
  struct Column {
    const char *key, *title;
    double scale;
  };
  constexpr Column kColumns[] = {{"pairs", "pairs", 1},
                                 {"images", "images", 1},
                                 {"examples", "examples", 1},
                                 {"text_bytes", "MB of text", 1e-6},
                                 {"bytes", "MB", 1e-6},
                                 {"source_words", "source words", 1},
                                 {"target_words", "target words", 1},
                                 {"source_tokens", "source tokens", 1},
                                 {"target_tokens", "target tokens", 1},
                                 {"tokens", "tokens", 1},
                                 {"truncated", "cut short", 1}};
  std::vector<Column> used;
  for (const Column& column : kColumns) {
    for (const ReadJson& split : manifest["splits"]) {
      if (!split.contains(column.key)) continue;
      used.push_back(column);
      table.header.emplace_back(column.title);
      table.alignment += 'r';
      break;
    }
  }
  for (const ReadJson& split : manifest["splits"]) {
    std::vector<std::string> row = {split.value("name", "")};
    for (const Column& column : used) {
      const double value = number(split, column.key) * column.scale;
      row.push_back(column.scale < 1 ? fmt::format("{:.1f}", value) : counted(value));
      out.facts["splits"][row[0]][column.key] = number(split, column.key);
    }
    table.rows.push_back(std::move(row));
  }
  out.tables.push_back(table);
}

// Adds what the manifest of the data says of the training set.
void add_manifest(const DataFacts& data, Answer& out) {
  const ReadJson& manifest = data.manifest;
  const ReadJson& train = manifest["splits"][0];
  const double pairs = number(train, "pairs"), images = number(train, "images"),
               examples = number(train, "examples");
  const double bytes = number(train, "text_bytes") + number(train, "bytes");
  const std::string what = pairs > 0 ? "sentence pairs" : images > 0 ? "images" : "texts";
  out.verdict = fmt::format("{} {}{}.", counted(std::max({pairs, images, examples})), what,
                            bytes > 0 ? fmt::format(", {:.1f} MB", bytes * 1e-6) : "");
  add_splits(manifest, out);
  const double words = number(train, "source_words") + number(train, "target_words");
  const double tokens = number(train, "source_tokens") + number(train, "target_tokens");
  if (pairs > 0 && words > 0) {
    out.evidence.push_back(fmt::format(
        "{:.1f} words and {:.1f} tokens a pair; {:.2f} tokens a word, so little is split.",
        words / pairs, tokens / pairs, tokens / words));
    if (tokens > 1.6 * words) {
      out.evidence.back() = fmt::format(
          "{:.1f} words and {:.1f} tokens a pair; {:.2f} tokens a "
          "word.",
          words / pairs, tokens / pairs, tokens / words);
    }
  }
  out.evidence.push_back("From the data's manifest: " + data.source.filename().string() + ".");
}

void add_lengths(const DataFacts& data, Answer& out) {
  if (data.lengths.empty()) return;
  TextTable table{{"tokens a sentence", "mean", "median", "95 %", "longest"}, {}, "lrrrr"};
  for (const LengthFacts& l : data.lengths) {
    table.rows.push_back({l.name, fmt::format("{:.1f}", l.mean), counted(l.median), counted(l.p95),
                          counted(l.longest)});
    out.facts["lengths"][l.name] = {
        {"mean", l.mean}, {"median", l.median}, {"p95", l.p95}, {"longest", l.longest}};
  }
  out.tables.push_back(table);
}

}  // namespace

Answer answer_data(const Run& run) {
  Answer out{.id = "data", .question = "How large is the training set?"};
  const DataFacts& data = run.facts.data;
  const ReadJson& manifest = data.manifest;
  const std::string folder = data.folder.empty() ? "" : data.folder.string();
  if (manifest.is_object() && manifest.contains("splits") && !manifest["splits"].empty()) {
    add_manifest(data, out);
  } else {
    const double items = items_of_epoch(run.history);
    out.verdict = items > 0
                      ? fmt::format("An epoch has {} items; bytes are not known.", counted(items))
                      : "Not known: no manifest, and no epoch was complete.";
    out.facts["items_of_an_epoch"] = items;
    out.not_measured.push_back(
        {"bytes, lines and lengths",
         fmt::format("there is no manifest{}", folder.empty() ? "" : " in " + folder),
         "prepare the data with `lockstep prepare`, and keep the folder"});
  }
  add_lengths(data, out);
  if (data.vocabulary) {
    out.evidence.push_back(vocabulary_text(*data.vocabulary));
    out.facts["vocabulary"] = {{"size", data.vocabulary->size},
                               {"used", data.vocabulary->used},
                               {"unknown", data.vocabulary->unknown},
                               {"tokens", data.vocabulary->tokens}};
  } else if (run.facts.value("task.name") == "translation") {
    out.not_measured.push_back({"coverage of the vocabulary and lengths",
                                "train.tokens is not where the configuration says",
                                "report on the machine that has " + folder});
  }
  double targets = 0;
  for (const StepRow& row : run.history.steps) targets += row.targets;
  if (targets > 0) {
    out.facts["targets_seen"] = targets;
    out.evidence.push_back(fmt::format("The run saw {} {} in {} steps, up to epoch {}.",
                                       short_number(targets),
                                       run.facts.unit() == "tok" ? "target tokens" : "targets",
                                       with_commas(static_cast<int64_t>(run.history.steps.size())),
                                       run.history.steps.back().epoch));
  }
  return out;
}

Answer answer_checkpoint_files(const Run& run) {
  Answer out{.id = "checkpoint_files", .question = "Which files make a checkpoint?"};
  if (run.facts.checkpoints.empty()) {
    out.verdict = "There is no complete checkpoint in the folder.";
    out.not_measured.push_back({"its files", "none is complete (with DONE)", "checkpoint.every"});
    return out;
  }
  const CheckpointFacts& newest = run.facts.checkpoints.back();
  out.verdict = fmt::format(
      "{} files, as {} shows; DONE, written last, has size and SHA-256 of each "
      "of them.",
      newest.files.size(), newest.name);
  TextTable table{{"file", "size", "what it holds"}, {}, "lrl"};
  for (const CheckpointFile& file : newest.files) {
    table.rows.push_back({file.name, short_bytes(file.bytes), file_meaning(file.name)});
    out.facts["files"][file.name] = file.bytes;
  }
  out.tables.push_back(table);
  std::vector<std::string> names;
  for (const CheckpointFacts& c : run.facts.checkpoints) names.push_back(c.name);
  out.evidence.push_back(fmt::format("In the folder: {}.", join(names, ", ")));
  return out;
}

Answer answer_checkpoint_size(const Run& run) {
  Answer out{.id = "checkpoint_size", .question = "How large is a checkpoint, and why?"};
  if (run.facts.checkpoints.empty()) {
    out.verdict = "There is no complete checkpoint in the folder.";
    return out;
  }
  const CheckpointFacts& newest = run.facts.checkpoints.back();
  out.verdict = short_bytes(newest.bytes) + ".";
  out.facts["bytes"] = newest.bytes;
  double begin = 0;
  for (const CheckpointFile& file : newest.files) {
    if (file.bytes < 0.001 * newest.bytes) continue;
    out.bars.push_back({file.name, short_bytes(file.bytes), "", begin, file.bytes});
    begin += file.bytes;
  }
  if (run.facts.weights) {
    const WeightFacts& w = *run.facts.weights;
    const double each = static_cast<double>(w.numbers) * w.bytes_each;
    out.verdict =
        fmt::format("{} = {} weights x {:g} bytes x {:.2f} arrays.", short_bytes(newest.bytes),
                    with_commas(w.numbers), w.bytes_each, newest.bytes / each);
    out.facts["weights"] = w.numbers;
    out.facts["bytes_a_weight"] = newest.bytes / static_cast<double>(w.numbers);
    out.evidence.push_back(fmt::format(
        "Each array of all weights takes {}: the weights, one for each of the optimizer's arrays "
        "({}), and the moving average where there is one. Gradients are not kept.",
        short_bytes(each), run.facts.value("optimizer.name")));
    TextTable table{{"part of the network", "tensors", "numbers", "share", "bytes"}, {}, "lrrrr"};
    for (const NetworkPart& p : w.parts) {
      table.rows.push_back(
          {p.name, with_commas(p.tensors), with_commas(p.numbers),
           percent(static_cast<double>(p.numbers) / static_cast<double>(w.numbers)),
           short_bytes(static_cast<double>(p.numbers) * w.bytes_each)});
      out.facts["parts"][p.name] = p.numbers;
    }
    out.tables.push_back(table);
  }
  double written = 0, held = 0;
  for (const CheckpointRow& row : run.history.checkpoints) {
    written += row.write_seconds;
    held += row.seconds;
  }
  if (!run.history.checkpoints.empty()) {
    const auto count = static_cast<double>(run.history.checkpoints.size());
    out.evidence.push_back(fmt::format(
        "Written {} time(s), {:.2f} s each on average, for {:.2f} s of which training stood still.",
        run.history.checkpoints.size(), written / count, held / count));
  }
  return out;
}

}  // namespace lockstep
