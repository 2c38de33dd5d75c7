// Exported models against transformers and CTranslate2: the same ids for the same text, the same
// logits, the same translations.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "formats/tensor_file.h"
#include "models/hugging_face.h"
#include "support/python.h"
#include "support/tiny_corpus.h"
#include "tasks/translation.h"
#include "train/checkpoint/saved_run.h"

namespace lockstep {
namespace {

using torch::Tensor;

// How both sides decode here: without a length norm, which transformers and CTranslate2 define
// otherwise, and up to the same length.
std::vector<std::string> decoding(int beam) {
  return {fmt::format("decoding.beam_size={}", beam), "decoding.length_penalty=0",
          "decoding.max_length_factor=0", "decoding.max_length_extra=40", "run.precision=fp32"};
}

std::vector<std::string> translate(const fs::path& folder, const std::vector<std::string>& lines,
                                   int beam) {
  SavedRun run = open_saved_run(folder, {.words = decoding(beam)});
  return dynamic_cast<Translation&>(*run.config.task).translate(lines);
}

void write_lines(const fs::path& path, const std::vector<std::string>& lines) {
  write_file(path, fmt::format("{}\n", fmt::join(lines, "\n")));
}

void write_ids(const fs::path& folder, const Subword& subword,
               const std::vector<std::string>& lines) {
  nlohmann::json ids = nlohmann::json::array();
  for (const std::string& line : lines) ids.push_back({line, subword.encode(line)});
  fs::create_directories(folder / "check");
  write_file(folder / "check" / "ids.json", ids.dump());
}

// Logits of the first sentence for its own words as translation.
void write_logits(const fs::path& folder, const std::string& line) {
  torch::NoGradGuard no_grad;
  SavedRun run = open_saved_run(folder, {.words = decoding(1)});
  auto& task = dynamic_cast<Translation&>(*run.config.task);
  std::vector<int32_t> ids = task.subword().encode(line), source = ids, target = ids;
  const int32_t bos = task.subword().bos_id();
  source.push_back(task.subword().eos_id());
  target.insert(target.begin(), bos);
  if (task.model().config().starts_with_zero()) {
    source.insert(source.begin(), bos);
    target.insert(target.begin(), static_cast<int32_t>(kZeroToken));
  }
  const TranslationInput input{pack_sentences({source}, torch::kCPU),
                               pack_sentences({target}, torch::kCPU)};
  const Tensor logits = task.model().logits(task.model().forward(input, {}), {}).contiguous();
  const Tensor source_ids = input.source.tokens.unsqueeze(0).contiguous();
  const Tensor target_ids = input.target.tokens.slice(0, 1).unsqueeze(0).contiguous();
  auto entry = [](const char* name, const Tensor& t, DType dtype) {
    std::vector<int64_t> shape = t.sizes().vec();
    const auto* data = static_cast<const std::byte*>(t.const_data_ptr());
    return TensorEntry{name, dtype, shape, {data, t.nbytes()}};
  };
  write_tensor_file(
      folder / "check" / "logits.safetensors",
      {entry("logits", logits.unsqueeze(0), DType::kF32), entry("source", source_ids, DType::kI64),
       entry("target", target_ids, DType::kI64)});
}

class Export : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* module : {"transformers", "ctranslate2", "sentencepiece"}) {
      if (!python_has(module)) GTEST_SKIP() << "needs the Python package " << module;
    }
  }

  // Trains NAME with `settings`, exports it to NAME-exported and writes what it is checked with.
  void make(const std::string& name, const std::string& settings,
            const std::vector<std::string>& lines) {
    const fs::path run = folder_.path() / name, exported = folder_.path() / (name + "-exported");
    const ProgramResult trained =
        run_lockstep(fmt::format("train {}/tiny.toml run.folder={} training.steps=250 {}",
                                 folder_.path().string(), run.string(), settings),
                     "OMP_NUM_THREADS=1");
    ASSERT_EQ(trained.exit_code, 0) << trained.errors;
    const ProgramResult result = run_lockstep(
        fmt::format("export {} --format huggingface --out {}", run.string(), exported.string()));
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    write_ids(exported, Subword::load(exported / "source.spm"), lines);
    write_lines(exported / "check" / "lines.txt", lines);
    for (const auto& [file, beam] : {std::pair{"greedy.txt", 1}, std::pair{"beam.txt", 4}}) {
      const std::vector<std::string> ours = translate(exported, lines, beam);
      EXPECT_EQ(ours, translate(run, lines, beam)) << name;  // the folder alone is enough
      write_lines(exported / "check" / file, ours);
    }
    write_logits(exported, lines[0]);
    folders_ += " " + exported.string();
  }

  // A model whose subwords were learned on real text, to be asked for the ids of real text.
  void make_real() {
    const fs::path data = fs::path(LOCKSTEP_SHARED) / "data";
    const fs::path run = folder_.path() / "real", exported = folder_.path() / "real-exported";
    const std::string pairs =
        (data / "multi30k/val.en.gz").string() + " " + (data / "multi30k/val.de.gz").string();
    for (const std::string& command :
         {fmt::format("prepare text {} --out {}/real-corpus --vocab 2000 --dev-size 10 --test-size "
                      "10",
                      pairs, folder_.path().string()),
          fmt::format("train {0}/tiny.toml data.corpus={0}/real-corpus run.folder={0}/real "
                      "training.steps=1",
                      folder_.path().string()),
          fmt::format("export {} --out {}", run.string(), exported.string())}) {
      const ProgramResult result = run_lockstep(command);
      ASSERT_EQ(result.exit_code, 0) << command << result.errors;
    }
    std::vector<std::string> lines = read_lines(data / "multi30k/test_2016_flickr.de.gz");
    std::vector<std::string> news = read_lines(data / "wmt-newstest/newstest2013.en.gz");
    lines.resize(500);
    lines.insert(lines.end(), news.begin(), news.begin() + 500);
    lines.insert(lines.end(),
                 {"", " ", "  two  blanks ", "------", "a\tb", "\u20ac 5 \u4f60\u597d x",
                  "\u00c4\u00e4 A\u0308", "\ufb01ne", "aaaaaaa", "1,000.50"});
    write_ids(exported, Subword::load(exported / "source.spm"), lines);
    folders_ += " " + exported.string();
  }

  TemporaryFolder folder_;
  std::string folders_;
};

TEST_F(Export, LoadsInTransformersAndCTranslate2WithEqualResults) {
  ASSERT_EQ(make_tiny_corpus(folder_.path()), "");
  write_tiny_config(folder_.path());
  const std::vector<std::string> lines = read_lines(folder_.path() / "test.en");
  make("pre", "", lines);
  make("post", "model.norm=post model.positions=halves model.activation=gelu", lines);
  make("bare", "model.attention_bias=false model.vocabulary_multiple=24", lines);
  make("zero",  // OpenSeq2Seq's: a start of zeros, a smaller epsilon
       "model.start=zero model.positions=halves model.norm_epsilon=1e-6 "
       "model.attention_bias=false",
       lines);
  const bool real = fs::exists(fs::path(LOCKSTEP_SHARED) / "data");
  if (real) make_real();

  const PythonResult result = run_parity_script("check_export.py", folders_);
  ASSERT_EQ(result.status, 0) << result.errors;
  const std::vector<std::string> names = {"PegasusForConditionalGeneration", "MarianMTModel",
                                          "PegasusForConditionalGeneration",
                                          "PegasusForConditionalGeneration"};
  std::size_t at = 0;
  for (const std::string& line : split(result.output, '\n')) {
    if (line.empty()) continue;
    SCOPED_TRACE(line);
    const nlohmann::json json = nlohmann::json::parse(line);
    EXPECT_EQ(json.at("other_ids"), 0);
    if (!json.contains("class")) {
      EXPECT_GT(json.at("ids"), 1000);
      continue;
    }
    ASSERT_LT(at, names.size());
    EXPECT_EQ(json.at("class"), names[at++]);
    // fp32 on both sides, sums in another order: logits of about 10 agree to five digits.
    EXPECT_LT(json.at("logits").at("difference").get<double>(),
              2e-5 * std::max(1.0, json.at("logits").at("largest").get<double>()));
    for (const char* kind :
         {"greedy_transformers", "greedy_ctranslate2", "beam_transformers", "beam_ctranslate2"}) {
      EXPECT_EQ(json.at(kind), 0) << kind;
    }
  }
  EXPECT_EQ(at, names.size());
  if (!real) GTEST_SKIP() << "real text is not at " LOCKSTEP_SHARED;
}

}  // namespace
}  // namespace lockstep
