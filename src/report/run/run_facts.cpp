#include "report/run/run_facts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/statistics.h"
#include "base/text.h"
#include "config/source.h"
#include "data/tokenize/translation_tokenizer.h"
#include "formats/tensor_file.h"
#include "formats/token_file.h"
#include "report/run/read_json.h"

namespace lockstep {

namespace {

ReadJson read_json(const fs::path& path) {
  if (!fs::exists(path)) return nullptr;
  ReadJson out = ReadJson::parse(read_file(path), nullptr, false);
  return out.is_discarded() ? ReadJson(nullptr) : out;  // a live file may be truncated
}

void add_config(RunFacts& out) {
  const fs::path path = out.folder / "config.toml";
  if (!fs::exists(path)) {
    ConfigError error("{}: holds no run (no config.toml)", out.folder.string());
    error.set_advice("the folder that `lockstep train` wrote");
    throw error;
  }
  ConfigSource source = ConfigSource::from_file(path);
  for (const WrittenEntry& entry : source.take_below("")) out.config[entry.key] = entry.value.text;
  for (int i = 1; fs::exists(out.folder / fmt::format("config.{}.toml", i)); ++i) {
    out.configs.push_back(fmt::format("config.{}.toml", i));
  }
}

void add_versions(RunFacts& out) {
  const fs::path path = out.folder / "version.txt";
  if (!fs::exists(path)) return;
  for (const std::string& line : read_lines(path)) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    out.versions.emplace_back(line.substr(0, blank), std::string(trim(line.substr(blank))));
  }
}

void add_launch(RunFacts& out) {
  const fs::path path = out.folder / "launch.jsonl";
  if (!fs::exists(path)) return;
  for_each_line(path, [&](std::string_view line, int64_t) {
    ReadJson json = ReadJson::parse(line, nullptr, false);
    if (json.is_object()) out.launch.push_back(std::move(json));
  });
}

std::optional<CheckpointFacts> checkpoint_of(const fs::path& folder) {
  const ReadJson done = read_json(folder / "DONE");
  if (!done.is_object()) return std::nullopt;
  CheckpointFacts out{.name = folder.filename(), .folder = folder, .files = {}};
  for (const auto& [name, record] : done.items()) {
    const double bytes = record.is_object() ? record.value("bytes", 0.0) : 0.0;
    out.files.push_back({name, bytes});
    out.bytes += bytes;
  }
  std::sort(out.files.begin(), out.files.end(),
            [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

int64_t step_of(const CheckpointFacts& checkpoint) {
  const std::size_t at = checkpoint.name.rfind('_');
  return at == std::string::npos ? 0 : std::atoll(checkpoint.name.c_str() + at + 1);
}

void add_checkpoints(RunFacts& out) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(out.folder / "checkpoints", none)) {
    if (auto found = checkpoint_of(entry.path())) out.checkpoints.push_back(std::move(*found));
  }
  std::sort(out.checkpoints.begin(), out.checkpoints.end(),
            [](const auto& a, const auto& b) { return step_of(a) < step_of(b); });
}

bool is_buffer(const std::string& name) {
  return name.ends_with("running_mean") || name.ends_with("running_var") ||
         name.ends_with("num_batches_tracked");
}

void add_weights(RunFacts& out) {
  if (out.checkpoints.empty()) return;
  const fs::path path = out.checkpoints.back().folder / "weights.safetensors";
  if (!fs::exists(path)) return;
  const TensorFile file(path);
  WeightFacts facts;
  for (const TensorEntry& tensor : file.entries()) {
    int64_t numbers = 1;
    for (int64_t n : tensor.shape) numbers *= n;
    if (is_buffer(tensor.name)) {
      facts.buffers += numbers;
      continue;
    }
    facts.numbers += numbers;
    facts.bytes_each = static_cast<double>(dtype_bytes(tensor.dtype));
    facts.tensors.emplace_back(tensor.name, tensor.shape);
    const std::string part = tensor.name.substr(0, tensor.name.find('.'));
    auto same = [&](const NetworkPart& p) { return p.name == part; };
    auto found = std::find_if(facts.parts.begin(), facts.parts.end(), same);
    if (found == facts.parts.end()) found = facts.parts.insert(found, {.name = part});
    found->tensors += 1;
    found->numbers += numbers;
    if (tensor.shape.size() > 1) found->matrix_numbers += numbers;
  }
  out.weights = std::move(facts);
}

LengthFacts lengths_of(const std::string& name, std::vector<double> lengths) {
  LengthFacts out{.name = name, .items = static_cast<int64_t>(lengths.size())};
  out.mean = mean(lengths);
  std::sort(lengths.begin(), lengths.end());
  out.median = quantile(lengths, 0.5);
  out.p95 = quantile(lengths, 0.95);
  out.longest = lengths.empty() ? 0 : lengths.back();
  return out;
}

// Returns the id of <unk> in a prepared corpus, of our own vocabulary (docs/translation.md) or of a
// published model's.
int32_t unknown_id(const fs::path& corpus) {
  constexpr int32_t kOwnUnknown = 3;  // <pad>, </s>, <s>, <unk>
  return TranslationTokenizer::is_published(corpus)
             ? TranslationTokenizer::load(corpus).special().unk
             : kOwnUnknown;
}

// Adds the lengths of all pairs, and the ids of the first ones in a file that `prepare` shuffled.
void add_tokens(const fs::path& path, DataFacts& out) {
  constexpr int64_t kMostRead = 200'000;
  const TokenFile file(path);
  const int32_t unknown = unknown_id(path.parent_path());
  std::vector<double> source, target;
  for (int64_t i = 0; i < file.pairs(); ++i) {
    source.push_back(file.source_length(i));
    target.push_back(file.target_length(i));
  }
  out.lengths = {lengths_of("source", std::move(source)), lengths_of("target", std::move(target))};
  VocabularyFacts vocabulary{.size = file.vocab_size(),
                             .pairs = std::min(kMostRead, file.pairs()),
                             .of_pairs = file.pairs()};
  std::vector<char> seen(static_cast<std::size_t>(std::max(1, file.vocab_size())));
  for (int64_t i = 0; i < vocabulary.pairs; ++i) {
    for (const auto& ids : {file.source(i), file.target(i)}) {
      for (int32_t id : ids) {
        seen[static_cast<std::size_t>(id)] = 1;
        vocabulary.unknown += id == unknown ? 1 : 0;
        vocabulary.tokens += 1;
      }
    }
  }
  vocabulary.used = std::count(seen.begin(), seen.end(), 1);
  out.vocabulary = vocabulary;
}

void add_data(RunFacts& out) {
  DataFacts& data = out.data;
  for (const char* key : {"data.corpus", "images.data", "texts.data", "text.data"}) {
    if (!out.value(key).empty()) data.folder = out.value(key);
  }
  for (const fs::path& path : {out.folder / "corpus.json", data.folder / "manifest.json"}) {
    if (!data.manifest.is_null() || path.parent_path().empty()) continue;
    data.manifest = read_json(path);
    if (data.manifest.is_object()) data.source = path;
  }
  const fs::path tokens = data.folder / "train.tokens";
  if (!data.folder.empty() && fs::exists(tokens)) add_tokens(tokens, data);
}

// Length of "2026-11-22 05:08:22.288 ", which precedes the first line of a message.
constexpr std::size_t kStamp = 24;
std::string_view message_of(std::string_view line) {
  const bool stamped = line.size() > kStamp && line[4] == '-' && line[13] == ':';
  return stamped ? line.substr(kStamp) : line;
}

void add_log(RunFacts& out) {
  const fs::path path = out.folder / "logs" / "rank00.log";
  if (!fs::exists(path)) return;
  constexpr std::string_view kEvaluation = "eval at step ";
  for_each_line(path, [&](std::string_view line, int64_t) {
    const std::string_view text = message_of(line);
    if (text.starts_with(kEvaluation)) {
      out.samples.clear();
      std::string digits;
      for (char c : text.substr(kEvaluation.size())) {
        if (c >= '0' && c <= '9') {
          digits += c;
        } else if (c != ',') {
          break;
        }
      }
      out.samples_step = std::atoll(digits.c_str());
    } else if (text.starts_with("  source     ")) {
      out.samples.push_back({std::string(text.substr(13)), "", ""});
    } else if (text.starts_with("  reference  ") && !out.samples.empty()) {
      out.samples.back().reference = text.substr(13);
    } else if (text.starts_with("  output     ") && !out.samples.empty()) {
      out.samples.back().output = text.substr(13);
    } else if (text.starts_with("warning: ")) {
      out.warnings.emplace_back(line);
    }
  });
}

void add_errors(RunFacts& out) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(out.folder / "logs", none)) {
    if (entry.path().extension() != ".error") continue;
    out.errors.emplace_back(entry.path().stem(), std::string(trim(read_file(entry.path()))));
  }
  std::sort(out.errors.begin(), out.errors.end());
}

}  // namespace

std::string RunFacts::value(const std::string& key, const std::string& otherwise) const {
  auto found = config.find(key);
  return found == config.end() ? otherwise : found->second;
}

double RunFacts::number(const std::string& key, double otherwise) const {
  const std::string text = value(key);
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const double out = std::strtod(text.c_str(), &end);
  return end == text.c_str() + text.size() ? out : otherwise;
}

int RunFacts::ranks() const { return live.is_object() ? std::max(1, live.value("size", 1)) : 1; }

int RunFacts::hosts() const {
  std::set<std::string> names;
  if (live.is_object() && live.contains("ranks")) {
    for (const ReadJson& rank : live["ranks"]) names.insert(rank.value("host", ""));
  }
  return std::max<int>(1, static_cast<int>(names.size()));
}

bool RunFacts::failed() const { return live.is_object() && live.value("state", "") == "failed"; }

std::string RunFacts::unit() const {
  if (live.is_object() && live.contains("unit")) return live.value("unit", "tok");
  return value("task.name") == "images" ? "img" : "tok";
}

RunFacts read_facts(const fs::path& folder) {
  RunFacts out;
  out.folder = folder;
  add_config(out);
  add_versions(out);
  out.live = read_json(folder / "live.json");
  out.plan = read_json(folder / "plan.json");
  add_launch(out);
  add_checkpoints(out);
  add_weights(out);
  add_data(out);
  add_log(out);
  add_errors(out);
  return out;
}

RunFacts read_state_facts(const fs::path& folder) {
  RunFacts out;
  out.folder = folder;
  add_config(out);
  out.live = read_json(folder / "live.json");
  add_launch(out);
  add_log(out);
  return out;
}

}  // namespace lockstep
