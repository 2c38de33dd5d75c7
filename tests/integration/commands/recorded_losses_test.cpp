// The first 20 steps of each task, recorded: a change that is not meant to change what the program
// computes changes no digit of them.
#include <gtest/gtest.h>
#include <torch/version.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "support/tiny_images.h"
#include "support/tiny_runs.h"
#include "support/tiny_texts.h"

namespace lockstep {
namespace {

const fs::path kRecord = fs::path(LOCKSTEP_SOURCE) / "tests/integration/recorded_losses.json";

// The instruction sets of our kernels, ATen, MKL and oneDNN, pinned to what every x86-64 machine of
// the last ten years has.
constexpr const char* kPinned =
    "OMP_NUM_THREADS=1 LOCKSTEP_ISA=avx2 ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=COMPATIBLE "
    "ONEDNN_MAX_CPU_ISA=AVX2";

// oneDNN cuts its convolutions by the caches of the processor, and a release of torch may add in
// another order: all digits are promised where the record was made. Elsewhere a loss may differ by
// 1 % and a norm by 10 %, which is how far the images' have drifted after 20 steps with AVX-512.
std::string place_of_record() {
  for (const std::string& line : read_lines("/proc/cpuinfo")) {
    if (line.starts_with("vendor_id")) {
      return std::string(split_words(line).back()) + ", torch " TORCH_VERSION;
    }
  }
  return "unknown";
}

class RecordedLosses : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { folder_ = new TemporaryFolder(); }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static fs::path folder() { return folder_->path(); }

  // Trains 20 steps of FOLDER/tiny.toml on `ranks` ranks: loss and gradient norm of each.
  static nlohmann::json figures_of(const std::string& task, int ranks, const std::string& words) {
    const fs::path run = folder() / fmt::format("{}{}", task, ranks);
    std::string train = fmt::format(
        "train {}/tiny.toml run.folder={} run.precision=fp32 run.seed=7 training.steps=20 "
        "training.clip_norm=1 {}",
        folder().string(), run.string(), words);
    if (ranks > 1) train = fmt::format("launch -n {} -- {}", ranks, train);
    const ProgramResult trained = run_lockstep(train, kPinned);
    EXPECT_EQ(trained.exit_code, 0) << trained.errors;
    nlohmann::json out = nlohmann::json::array();
    for (const auto& step : metrics_of(run, "step")) {
      out.push_back({step.at("train/loss"), step.at("train/gradient_norm")});
    }
    return out;
  }

  // LOCKSTEP_RECORD_LOSSES=1 writes the record anew, for a change that is meant to change it.
  static void compare_or_record(const std::string& task, const std::string& words = "") {
    for (const int ranks : {1, 2}) {
      const nlohmann::json found = figures_of(task, ranks, words);
      ASSERT_EQ(found.size(), 20u);
      nlohmann::ordered_json record;
      if (fs::exists(kRecord)) record = nlohmann::ordered_json::parse(read_file(kRecord));
      const std::string name = fmt::format("{}, {} {}", task, ranks, ranks == 1 ? "rank" : "ranks");
      if (std::getenv("LOCKSTEP_RECORD_LOSSES") != nullptr) {
        record["place"] = place_of_record();
        record[name] = found;
        write_record(record);
        continue;
      }
      expect_equal(record, name, found);
    }
  }

  // A line an entry.
  static void write_record(const nlohmann::ordered_json& record) {
    std::string text;
    for (const auto& [name, value] : record.items()) {
      text += fmt::format("{}{}: {}", text.empty() ? "{\n" : ",\n", nlohmann::json(name).dump(),
                          value.dump());
    }
    write_file(kRecord, text + "\n}\n");
  }

  static void expect_equal(const nlohmann::ordered_json& record, const std::string& name,
                           const nlohmann::json& found) {
    const bool same_place = record.at("place") == place_of_record();
    for (std::size_t step = 0; step < 20; ++step) {
      for (const std::size_t figure : {0u, 1u}) {
        const double is = found[step][figure], was = record.at(name).at(step).at(figure);
        const double allowed = same_place ? 0 : (figure == 0 ? 0.01 : 0.1) * std::abs(was);
        EXPECT_NEAR(is, was, allowed)
            << name << ", step " << step + 1 << (figure == 0 ? ": loss" : ": gradient norm");
      }
    }
  }

  inline static TemporaryFolder* folder_ = nullptr;
};

TEST_F(RecordedLosses, OfTranslationHaveNotChanged) {
  ASSERT_EQ(make_tiny_corpus(folder()), "");
  write_tiny_config(folder());
  compare_or_record("translation");
}

TEST_F(RecordedLosses, OfImagesHaveNotChanged) {
  write_tiny_images(folder() / "data");
  write_tiny_image_config(folder() / "tiny.toml", folder() / "data");
  // Larger steps would make of another rounding another run.
  compare_or_record("images", "optimizer.lr=1e-3");
}

TEST_F(RecordedLosses, OfTextsHaveNotChanged) {
  write_tiny_bert(folder(), 2);
  ASSERT_EQ(prepare_tiny_texts(folder()), "");
  write_tiny_text_config(folder());
  compare_or_record("texts");
}

}  // namespace
}  // namespace lockstep
