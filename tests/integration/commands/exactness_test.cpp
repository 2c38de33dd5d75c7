// A run that is stopped and resumed is the run that was not, byte for byte: weights, optimizer,
// averages, errors that hooks feed back, statistics, guard and position, and every figure of
// metrics.jsonl that is no time. A table of tasks, number formats, ways to exchange gradients,
// sharded optimizers, micro-batches and ranks; by default a sample that holds every value of each
// column, with LOCKSTEP_EXACTNESS_TABLE=1 the whole product.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

#include "support/tiny_images.h"
#include "support/tiny_runs.h"
#include "support/tiny_texts.h"

namespace lockstep {
namespace {

struct Row {
  std::string task, precision, exchange;
  bool sharded = false;
  int micro_batches = 1, ranks = 1;

  std::string name() const {
    return fmt::format("{}, {}, {}{}, {} micro-batch{}, {} rank{}", task, precision, exchange,
                       sharded ? ", sharded" : "", micro_batches, micro_batches == 1 ? "" : "es",
                       ranks, ranks == 1 ? "" : "s");
  }
};

const std::map<std::string, std::string> kExchanges = {
    {"every step", ""},
    {"bf16 hook", "comm.hook=bf16"},
    {"fp16 hook", "comm.hook=fp16"},
    {"powersgd", "comm.hook=powersgd comm.powersgd.start_step=2 comm.powersgd.min_compression=1"},
    {"powersgd+bf16",
     "comm.hook=powersgd+bf16 comm.powersgd.start_step=2 comm.powersgd.min_compression=1"},
    {"local_sgd", "comm.strategy=local_sgd comm.local_steps=2 comm.local_after=2"},
    {"diloco", "comm.strategy=diloco comm.local_steps=2 comm.local_after=2"}};
const std::vector<std::string> kTasks = {"translation", "images", "texts"};
const std::vector<std::string> kPrecisions = {"fp32", "bf16", "fp16"};

constexpr std::size_t kSample = 9;

// What one rank alone, or local steps, cannot do is no row.
bool makes_sense(const Row& row) {
  if (row.ranks == 1) return row.exchange == "every step" && !row.sharded;
  return !(row.sharded && (row.exchange == "local_sgd" || row.exchange == "diloco"));
}

std::vector<Row> table() {
  std::vector<Row> all;
  for (const auto& [exchange, words] : kExchanges) {
    for (const std::string& task : kTasks) {
      for (const std::string& precision : kPrecisions) {
        for (const bool sharded : {false, true}) {
          for (const int micro_batches : {1, 2}) {
            for (const int ranks : {1, 2}) {
              const Row row{task, precision, exchange, sharded, micro_batches, ranks};
              if (makes_sense(row)) all.push_back(row);
            }
          }
        }
      }
    }
  }
  if (std::getenv("LOCKSTEP_EXACTNESS_TABLE") != nullptr) return all;
  std::vector<Row> sample;  // 53 and the number of rows have no common factor
  for (std::size_t i = 0; i < kSample; ++i) sample.push_back(all[i * 53 % all.size()]);
  return sample;
}

class Exactness : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder();
    for (const std::string& task : kTasks) fs::create_directories(of(task));
    failure_ = make_tiny_corpus(of("translation"));
    write_tiny_config(of("translation"));
    write_tiny_images(of("images") / "data");
    write_tiny_image_config(of("images") / "tiny.toml", of("images") / "data");
    write_tiny_bert(of("texts"), 1);
    if (failure_.empty()) failure_ = prepare_tiny_texts(of("texts"));
    write_tiny_text_config(of("texts"));
    use_fixed_rate(of("texts") / "tiny.toml");
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  void SetUp() override { ASSERT_EQ(failure_, ""); }

  // A schedule that spans the run would be another one in a run of fewer steps.
  static void use_fixed_rate(const fs::path& config) {
    const std::string linear = "name = \"hf_linear\"\nnum_warmup_steps = 4";
    std::string text = read_file(config);
    text.replace(text.find(linear), linear.size(), "name = \"fixed\"");
    write_file(config, text);
  }

  static fs::path of(const std::string& task) { return folder_->path() / task; }

  static ProgramResult train(const Row& row, const std::string& name, const std::string& words) {
    std::string train = fmt::format(
        "train {}/tiny.toml run.folder={} run.precision={} run.seed=5 training.average_decay=0.9 "
        "training.shard_optimizer={} batch.accumulate={} checkpoint.every=1000 {} {}",
        of(row.task).string(), (folder_->path() / name).string(), row.precision, row.sharded,
        row.micro_batches, kExchanges.at(row.exchange), words);
    if (row.ranks > 1) train = fmt::format("launch -n {} -- {}", row.ranks, train);
    return run_lockstep(train, "OMP_NUM_THREADS=1");
  }

  // Every file of the run's checkpoint, and of metrics.jsonl the figures that are no times.
  static std::map<std::string, std::string> all_of(const std::string& name) {
    std::map<std::string, std::string> out;
    const fs::path run = folder_->path() / name;
    for (const auto& file : fs::directory_iterator(run / "checkpoints" / "step_9")) {
      out[file.path().filename()] = read_file(file.path());
    }
    for (const char* kind : {"step", "evaluation", "meeting"}) {
      std::map<int64_t, int> times_told;
      for (nlohmann::json event : metrics_of(run, kind)) {
        const int64_t step = event.at("step");
        for (const char* timed : {"time", "speed", "comm", "seconds"}) {
          for (auto it = event.begin(); it != event.end();) {
            it = it.key().starts_with(timed) ? event.erase(it) : std::next(it);
          }
        }
        out[fmt::format("{} {} of step {}", kind, ++times_told[step], step)] = event.dump();
      }
    }
    return out;
  }

  static void compare(const std::string& name, const std::string& with, const std::string& row) {
    const auto a = all_of(name), b = all_of(with);
    std::set<std::string> names;
    for (const auto* all : {&a, &b}) {
      for (const auto& [file, content] : *all) names.insert(file);
    }
    for (const std::string& file : names) {
      const bool both = a.contains(file) && b.contains(file);
      EXPECT_TRUE(both) << row << ": " << file << " is in one of the runs only";
      if (!both) continue;
      const bool short_text = a.at(file).size() < 1000;
      EXPECT_TRUE(a.at(file) == b.at(file))
          << row << ": " << file << " differs"
          << (short_text ? ": " + a.at(file) + "\n" + b.at(file) : "");
    }
  }

  inline static TemporaryFolder* folder_ = nullptr;
  inline static std::string failure_;
};

TEST_F(Exactness, AStoppedRunIsTheOneThatWasNot) {
  int number = 0;
  for (const Row& row : table()) {
    const std::string whole = fmt::format("whole{}", ++number),
                      parts = fmt::format("parts{}", number);
    const ProgramResult one = train(row, whole, "training.steps=9");
    ASSERT_EQ(one.exit_code, 0) << row.name() << one.errors;
    // Groups of local steps are the same run only where they meet anyway.
    const bool local = row.exchange == "local_sgd" || row.exchange == "diloco";
    const ProgramResult first = train(row, parts, fmt::format("training.steps={}", local ? 6 : 5));
    ASSERT_EQ(first.exit_code, 0) << row.name() << first.errors;
    const ProgramResult rest = train(row, parts, "training.steps=9 --resume");
    ASSERT_EQ(rest.exit_code, 0) << row.name() << rest.errors;
    compare(whole, parts, row.name());
    std::printf("[ %-70s ]\n", row.name().c_str());
    for (const std::string& name : {whole, parts}) fs::remove_all(folder_->path() / name);
  }
}

TEST_F(Exactness, TwoRunsOfOneSeedAreEqual) {
  for (const std::string task : {"translation", "images"}) {
    const Row row{task, "bf16", "powersgd", true, 2, 2};
    for (const char* name : {"first", "second"}) {
      const ProgramResult trained = train(row, name, "training.steps=9");
      ASSERT_EQ(trained.exit_code, 0) << row.name() << trained.errors;
    }
    compare("first", "second", row.name());
    for (const char* name : {"first", "second"}) fs::remove_all(folder_->path() / name);
  }
}

}  // namespace
}  // namespace lockstep
