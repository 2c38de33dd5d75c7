#include "commands/models/checkpoint.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/date.h"
#include "base/file_lock.h"
#include "base/table.h"
#include "base/text.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/checkpoint_inspection.h"
#include "train/checkpoint/saved_run.h"
#include "train/folder/run_folder.h"

namespace lockstep {

namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr int kExitDiffers = 1;  // of `diff`, as diff(1)

std::string time_text(double seconds) {
  if (seconds == 0) return "-";
  return local_date(static_cast<std::time_t>(seconds), "%Y-%m-%d %H:%M:%S");
}

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

std::string plain(const fs::path& path) {
  std::string text = path.lexically_normal().string();
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

bool is_run(const fs::path& path) { return fs::exists(RunFolder(path).config()); }

RunFolder require_run(const std::string& given) {
  RunFolder run{fs::path(plain(given))};
  run.require_run();
  return run;
}

// Returns the checkpoint that a path names: itself, or of a run the one that `which` says.
fs::path require_checkpoint(const std::string& given, const std::string& which) {
  const fs::path path = plain(given);
  if (is_run(path)) return find_checkpoint(RunFolder(path).checkpoints(), which);
  if (!fs::is_directory(path)) throw DataError("{}: there is no such run or checkpoint", given);
  if (!fs::exists(path / "DONE") && !fs::exists(state_file(path))) {
    DataError error("{}: holds neither a run nor a checkpoint", given);
    error.set_advice("a run, as runs/quickstart, or runs/quickstart/checkpoints/step_900");
    throw error;
  }
  return path;
}

// Returns by step how the run speaks of it: "newest", "best", "best-chrf", with the value.
std::map<int64_t, std::string> names_of(const std::vector<ListedCheckpoint>& all) {
  std::map<int64_t, std::string> out;
  const auto add = [&](int64_t step, const std::string& text) {
    std::string& have = out[step];
    have += (have.empty() ? "" : ", ") + text;
  };
  const auto newest = std::ranges::find_if(
      all, [](const ListedCheckpoint& c) { return c.damage.empty() && c.position; });
  if (newest == all.end()) return out;
  add(newest->step, "newest");
  bool first = true;
  for (const MetricHistory& history : newest->position->validation) {
    if (!history.best.empty()) {
      const RankedStep& best = history.best.front();
      add(best.step, fmt::format("best{} ({} {:.4g})", first ? "" : "-" + history.metric,
                                 history.metric, best.value));
    }
    first = false;
  }
  return out;
}

int list(const Arguments& arguments) {
  std::string given;
  CommandLine app(
      "Lists the checkpoints of a run, the newest first, unfinished and damaged ones too. Looks "
      "at\n"
      "sizes alone; `lockstep checkpoint verify` reads every byte.",
      "lockstep checkpoint list");
  app.add_option("run", given, "RUN")->required();
  if (!app.parse(arguments)) return kExitOk;
  const std::vector<ListedCheckpoint> all =
      list_checkpoints(require_run(given).checkpoints(), CheckpointCheck::kSizes);
  if (all.empty()) {
    fmt::print("{}: no checkpoints\n", given);
    return kExitOk;
  }
  const std::map<int64_t, std::string> names = names_of(all);
  Rows rows = {{"checkpoint", "epoch", "written", "size", "what it is"}};
  for (const ListedCheckpoint& one : all) {
    const auto name = names.find(one.step);
    std::string what = !one.damage.empty()   ? "not whole: " + one.damage
                       : name == names.end() ? ""
                                             : name->second;
    rows.push_back({one.path.filename().string(),
                    one.position ? std::to_string(one.position->epoch) : "-",
                    time_text(one.written), short_bytes(static_cast<double>(one.bytes)), what});
  }
  fmt::print("{}", format_table(rows, " r r"));
  return kExitOk;
}

std::vector<fs::path> tensor_files(const fs::path& checkpoint) {
  std::vector<fs::path> out;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoint)) {
    if (entry.path().extension() == ".safetensors") out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

void show_position(const ListedCheckpoint& one) {
  fmt::print("{}\n", one.path.string());
  fmt::print("  written    {}, {}\n", time_text(one.written),
             short_bytes(static_cast<double>(one.bytes)));
  fmt::print("  state      {}\n", one.damage.empty() ? "whole, by size and hash" : one.damage);
  if (!one.position) {
    fmt::print("  position   state.json cannot be read\n");
    return;
  }
  const RunPosition& position = *one.position;
  fmt::print("  position   step {}, epoch {}, {} steps into it; {} targets seen\n",
             with_commas(position.step), position.epoch, with_commas(position.step_in_epoch),
             with_commas(position.targets_seen));
  if (position.evaluated_step >= 0) {
    fmt::print("  evaluated  at step {}{}{}\n", with_commas(position.evaluated_step),
               position.validation.empty() ? "" : "; best: ", best_text(position.validation));
  }
}

std::string range_text(const TensorFigures& figures) {
  if (figures.numbers == figures.not_finite) return "-";
  return fmt::format("{:.4g} to {:.4g}", figures.least, figures.largest);
}

int show(const Arguments& arguments) {
  std::string given, which = "newest";
  bool tensors = false;
  CommandLine app("Shows where a checkpoint stands and what it holds.", "lockstep checkpoint show");
  app.add_option("run", given, "RUN, or a checkpoint as RUN/checkpoints/step_900")->required();
  app.add_option("--checkpoint", which, std::string("of a run: ") + kCheckpointHelp)
      ->capture_default_str();
  app.add_flag("--tensors", tensors, "every tensor with its shape, range and root mean square");
  if (!app.parse(arguments)) return kExitOk;
  const fs::path path = require_checkpoint(given, which);
  show_position(list_checkpoint(path, CheckpointCheck::kHashes));
  Rows files = {{"file", "tensors", "numbers", "not finite"}}, each;
  if (tensors) each.push_back({"tensor", "type", "shape", "range", "rms", "not finite"});
  for (const fs::path& file : tensor_files(path)) {
    int64_t numbers = 0, not_finite = 0;
    const std::vector<InspectedTensor> found = inspect_tensors(file);
    for (const InspectedTensor& tensor : found) {
      const TensorFigures& figures = tensor.figures;
      numbers += figures.numbers;
      not_finite += figures.not_finite;
      if (!tensors) continue;
      each.push_back({file.stem().string() + ":" + tensor.name, tensor.dtype,
                      shape_text(tensor.shape), range_text(figures),
                      fmt::format("{:.4g}", figures.rms), with_commas(figures.not_finite)});
    }
    files.push_back({file.filename().string(), with_commas(static_cast<int64_t>(found.size())),
                     with_commas(numbers), with_commas(not_finite)});
  }
  fmt::print("\n{}", format_table(files, " rrr"));
  if (tensors) fmt::print("\n{}", format_table(each, "    rr"));
  return kExitOk;
}

// Returns what `verify` looks at for one of its words: all that a run has, or one checkpoint.
std::vector<ListedCheckpoint> verified(const std::string& given) {
  if (is_run(given)) {
    return list_checkpoints(RunFolder(fs::path(given)).checkpoints(), CheckpointCheck::kHashes);
  }
  return {list_checkpoint(require_checkpoint(given, ""), CheckpointCheck::kHashes)};
}

int verify(const Arguments& arguments) {
  std::vector<std::string> given;
  CommandLine app(
      "Reads every byte of checkpoints and compares sizes and hashes with those that were "
      "written.\n"
      "Ends with 3 when one is damaged.",
      "lockstep checkpoint verify");
  app.add_option("checkpoints", given, "RUNs, or checkpoints as RUN/checkpoints/step_900")
      ->required();
  if (!app.parse(arguments)) return kExitOk;
  std::size_t damaged = 0, all = 0;
  for (const std::string& word : given) {
    for (const ListedCheckpoint& one : verified(plain(word))) {
      ++all;
      if (!one.damage.empty()) ++damaged;
      fmt::print("{}: {}\n", one.path.string(), one.damage.empty() ? "whole" : one.damage);
    }
  }
  if (damaged == 0) return kExitOk;
  DataError error("{} of {} not whole", damaged, counted(all, "checkpoint"));
  error.set_advice(
      "--resume and every other command pass them over; "
      "`lockstep checkpoint prune --damaged` removes them");
  throw error;
}

// Prints the keys of state.json that differ; returns their number.
int64_t diff_states(const fs::path& first, const fs::path& second) {
  const std::vector<StateDifference> found = differing_states(first, second);
  for (const StateDifference& one : found) {
    fmt::print("state.json: {} is {}, there {}\n", one.key, one.first, one.second);
  }
  return static_cast<int64_t>(found.size());
}

void add_rows(const std::string& file, const std::vector<TensorDifference>& found, Rows& rows) {
  for (const TensorDifference& one : found) {
    const std::string name = file + ":" + one.name;
    if (!one.why.empty()) {
      rows.push_back({name, one.why});
      continue;
    }
    rows.push_back({name,
                    fmt::format("{} of {}", with_commas(one.differing), with_commas(one.numbers)),
                    fmt::format("{:.4g}", one.largest), fmt::format("{:.4g}", one.rms),
                    fmt::format("{:.3g}", one.relative)});
  }
}

int diff(const Arguments& arguments) {
  std::string first, second, which = "newest";
  CommandLine app(
      "Compares two checkpoints, tensor by tensor and bit by bit, and where they stand. Ends with "
      "0\n"
      "when they are equal, with 1 when they differ.",
      "lockstep checkpoint diff");
  app.add_option("first", first, "RUN, or a checkpoint as RUN/checkpoints/step_900")->required();
  app.add_option("second", second, "the other")->required();
  app.add_option("--checkpoint", which, std::string("of runs: ") + kCheckpointHelp)
      ->capture_default_str();
  if (!app.parse(arguments)) return kExitOk;
  const fs::path a = require_checkpoint(first, which), b = require_checkpoint(second, which);
  fmt::print("{}\n{}\n", a.string(), b.string());
  std::set<std::string> names;
  for (const fs::path& checkpoint : {a, b}) {
    for (const fs::path& file : tensor_files(checkpoint)) names.insert(file.filename().string());
  }
  int64_t differences = diff_states(a, b);
  Rows rows = {{"tensor", "numbers differ", "at most", "rms", "of its rms"}};
  for (const std::string& name : names) {
    if (!fs::exists(a / name) || !fs::exists(b / name)) {
      fmt::print("{}: only in the {}\n", name, fs::exists(a / name) ? "first" : "second");
      ++differences;
      continue;
    }
    add_rows(fs::path(name).stem().string(), differing_tensors(a / name, b / name), rows);
  }
  differences += static_cast<int64_t>(rows.size()) - 1;
  if (rows.size() > 1) fmt::print("{}", format_table(rows, " rrrr"));
  if (differences == 0) fmt::print("equal in every bit\n");
  return differences == 0 ? static_cast<int>(kExitOk) : kExitDiffers;
}

// Throws ConfigError while a process trains in the run: it removes its checkpoints itself.
void lock_run(FileLock& lock, const RunFolder& run) {
  try {
    if (lock.try_lock()) return;
  } catch (const NoLocks&) {
    return;
  }
  throw ConfigError("{}: a process trains in it, and removes its checkpoints itself",
                    run.path().string());
}

// Returns those to remove. The newest that are whole are kept, and the best as long as they are.
std::vector<ListedCheckpoint> to_prune(const std::vector<ListedCheckpoint>& all, int64_t keep,
                                       bool damaged) {
  std::set<int64_t> best;
  for (const ListedCheckpoint& one : all) {
    if (!one.damage.empty() || !one.position) continue;
    best = best_steps(one.position->validation);
    break;
  }
  std::vector<ListedCheckpoint> out;
  int64_t kept = 0;
  for (const ListedCheckpoint& one : all) {
    if (!one.damage.empty()) {
      if (damaged) out.push_back(one);
    } else if (kept++ >= keep && !best.contains(one.step)) {
      out.push_back(one);
    }
  }
  return out;
}

int prune(const Arguments& arguments) {
  std::string given;
  std::optional<int64_t> keep;
  bool damaged = false, dry_run = false;
  CommandLine app(
      "Removes old checkpoints of a run. The best by each metric always stay, and so does the\n"
      "newest that is whole. Without an option it keeps as many as checkpoint.keep says.",
      "lockstep checkpoint prune");
  app.add_option("run", given, "RUN")->required();
  app.add_option("--keep", keep, "so many of the newest that are whole")->positive();
  app.add_flag("--damaged", damaged, "also those that are damaged or were not finished");
  app.add_flag("--dry-run", dry_run, "says what it would remove");
  if (!app.parse(arguments)) return kExitOk;
  const RunFolder run = require_run(given);
  if (!keep) keep = read_run_config(run.config(), {}).checkpoint.keep;
  FileLock lock(run.lock());
  lock_run(lock, run);
  double bytes = 0;
  const std::vector<ListedCheckpoint> found =
      to_prune(list_checkpoints(run.checkpoints(), CheckpointCheck::kHashes), *keep, damaged);
  for (const ListedCheckpoint& one : found) {
    if (!dry_run) remove_checkpoint(one.path);
    if (!dry_run && fs::exists(one.path)) {
      throw MachineError("{}: cannot be removed", one.path.string());
    }
    bytes += static_cast<double>(one.bytes);
    fmt::print("{}{}\n", one.path.string(), one.damage.empty() ? "" : " (" + one.damage + ")");
  }
  fmt::print("{}{} removed, {}\n", dry_run ? "would be: " : "", counted(found.size(), "checkpoint"),
             short_bytes(bytes));
  return kExitOk;
}

const Catalogue<CommandPart>& parts() {
  static const Catalogue<CommandPart> catalogue = [] {
    Catalogue<CommandPart> c("part of checkpoint");
    c.add("list", list, "the checkpoints of a run: newest, best, unfinished, damaged");
    c.add("show", show, "where one stands, and what it holds");
    c.add("verify", verify, "is every byte as it was written?");
    c.add("diff", diff, "how two differ, tensor by tensor");
    c.add("prune", prune, "remove old, damaged and unfinished ones");
    return c;
  }();
  return catalogue;
}

}  // namespace

int checkpoint(const Arguments& arguments) { return run_part("checkpoint", parts(), arguments); }

}  // namespace lockstep
