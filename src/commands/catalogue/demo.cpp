#include "commands/catalogue/demo.h"

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/control_group.h"
#include "base/file.h"
#include "base/text.h"
#include "launch/hosts/remote.h"

namespace lockstep {

namespace {

constexpr const char* kRanks = "auto";
constexpr const char* kRecipe = "configs/translation/quickstart.toml";
constexpr const char* kRun = "runs/quickstart";
constexpr const char* kCorpus = "data/catalogs";
constexpr int kSentences = 5;
// A whole demo took 250 MB of disk (packages, corpus, run), temporarily one checkpoint more, and
// 0.8 GB of memory besides torch's files while two ranks trained.
constexpr int64_t kDiskBytes = 700'000'000;
constexpr int64_t kMemoryBytes = 1'000'000'000;

// Returns the first free name of runs/quickstart, runs/quickstart-2, ...
fs::path free_run_folder() {
  fs::path out = kRun;
  for (int i = 2; fs::exists(out); ++i) out = fmt::format("{}-{}", kRun, i);
  return out;
}

void check_room() {
  std::error_code unknown;
  const fs::space_info disk = fs::space(".", unknown);
  if (!unknown && disk.available < static_cast<std::uintmax_t>(kDiskBytes)) {
    throw MachineError("{} free in this folder; the demo needs {}",
                       short_bytes(static_cast<double>(disk.available)), short_bytes(kDiskBytes));
  }
  const int64_t memory = usable_memory().free;
  if (memory > 0 && memory < kMemoryBytes) {
    throw MachineError("{} of memory free; the demo needs {}",
                       short_bytes(static_cast<double>(memory)), short_bytes(kMemoryBytes));
  }
}

void print_heading(const std::string& text) {
  fmt::print("\n== {}\n", text);
  std::fflush(stdout);
}

// Runs this program with other words to its end and returns its exit code. Ctrl-C reaches that
// program and not this one.
int run_self(const Arguments& words) {
  std::string command = "exec " + shell_quote(fs::read_symlink("/proc/self/exe").string());
  for (const std::string& word : words) command += " " + shell_quote(word);
  const int status = std::system(command.c_str());
  if (status == -1) throw MachineError("no shell to start {} with", words.front());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Returns the name by which the person called this program: "lockstep", "build/lockstep".
std::string own_name() {
  const std::string words = read_file("/proc/self/cmdline");
  return words.substr(0, words.find('\0'));
}

struct SentencePair {
  std::string source, target;
};

// Returns `count` pairs of 4 to 12 source words, spread evenly over those available.
std::vector<SentencePair> choose_sentences(const std::vector<std::string>& sources,
                                           const std::vector<std::string>& targets,
                                           std::size_t count) {
  std::vector<SentencePair> fit;
  for (std::size_t i = 0; i < sources.size() && i < targets.size(); ++i) {
    const std::size_t words = split_words(sources[i]).size();
    if (words >= 4 && words <= 12) fit.push_back({sources[i], targets[i]});
  }
  if (fit.size() <= count) return fit;
  std::vector<SentencePair> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(fit[i * fit.size() / count]);
  return out;
}

// Writes two files in the run folder: five.en, and the model's translation of it in five.out.
int translate_some(const fs::path& run) {
  const fs::path corpus = kCorpus;
  const std::vector<SentencePair> pairs =
      choose_sentences(read_lines(corpus / "test.en"), read_lines(corpus / "test.de"), kSentences);
  std::string sources;
  for (const SentencePair& pair : pairs) sources += pair.source + "\n";
  const fs::path input = run / "five.en", output = run / "five.out";
  write_file(input, sources);
  const int failed =
      run_self({"translate", run.string(), "--input", input.string(), "--output", output.string()});
  if (failed != 0) return failed;
  const std::vector<std::string> translations = read_lines(output);
  for (std::size_t i = 0; i < pairs.size() && i < translations.size(); ++i) {
    fmt::print("  source     {}\n  reference  {}\n  lockstep   {}\n\n", pairs[i].source,
               pairs[i].target, translations[i]);
  }
  return kExitOk;
}

void print_places(const std::string& run) {
  const std::string self = own_name();
  fmt::print("run folder:   {}   (config, logs, metrics.jsonl, events, checkpoints)\n", run);
  fmt::print("translate:    {} translate {} < lines.txt\n", self, run);
  fmt::print("what it did:  {} report {}\n", self, run);
  fmt::print("TensorBoard:  {} tensorboard {}\n", self, run);
}

}  // namespace

int demo(const Arguments& arguments) {
  Arguments words = arguments, settings = take_settings(words);
  std::string run, mirror, ranks = kRanks;
  CommandLine app(
      fmt::format("Learns English to German from the catalogs of Debian packages: fetches them "
                  "into {},\ntrains {}, evaluates and translates.\n"
                  "key=value words go to the training, as training.minutes=2.",
                  kCorpus, kRecipe),
      "lockstep demo");
  app.add_option("run", run, fmt::format("run folder ({}, or the next free one)", kRun));
  app.add_option("-n,--ranks", ranks, "as lockstep launch takes them")->capture_default_str();
  app.add_option("--mirror", mirror, "of Debian (as lockstep prepare catalogs takes it)");
  if (!app.parse(words)) return kExitOk;
  if (run.empty()) {
    run = free_run_folder().string();
  } else if (fs::exists(fs::path(run) / "metrics.jsonl")) {
    throw ConfigError("{} holds a run already; expected a name for a new one", run);
  }
  check_room();

  print_heading(fmt::format("corpus: {}", kCorpus));
  Arguments step{"prepare", "catalogs", "--out", kCorpus};
  if (!mirror.empty()) step.insert(step.end(), {"--mirror", mirror});
  if (int failed = run_self(step); failed != 0) return failed;

  print_heading(fmt::format("training: {}", run));
  step = {"launch", "-n", ranks, "--", "train", kRecipe, "run.folder=" + run};
  step.push_back(std::string("data.corpus=") + kCorpus);
  step.insert(step.end(), settings.begin(), settings.end());
  if (int failed = run_self(step); failed != 0) return failed;

  print_heading("BLEU on sentences that were not in training");
  step = {"launch", "-n", ranks, "--", "evaluate", run, "--split", "test"};
  if (int failed = run_self(step); failed != 0) return failed;

  print_heading(fmt::format("{} of them", kSentences));
  if (int failed = translate_some(run); failed != 0) return failed;
  print_places(run);
  return kExitOk;
}

}  // namespace lockstep
