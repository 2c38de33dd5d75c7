// Published translation models against transformers: ids, logits, scores and translations of models
// that transformers made with random weights, and what is left of them after training here.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "formats/tensor_file.h"
#include "support/program.h"
#include "support/python.h"
#include "tasks/translation.h"
#include "train/checkpoint/saved_run.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using torch::Tensor;

// Lines that tokenizers treat in their own ways.
const std::vector<std::string> kAwkward = {"A man rides a horse.",
                                           "",
                                           " ",
                                           "  two  blanks ",
                                           "------",
                                           "a\tb",
                                           "\u20ac 5 \u4f60\u597d x",
                                           "\u00c4\u00e4 A\u0308",
                                           "\ufb01ne",
                                           "1,000.50",
                                           ">>deu<< A man rides.",
                                           ">>xyz<<two",
                                           "a >>deu<< b",
                                           "__de__ eng_Latn"};

bool has_real_text() { return fs::exists(fs::path(LOCKSTEP_SHARED) / "data" / "multi30k"); }

std::string lines_text(std::vector<std::string> lines) {
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

// The models, made once for all tests.
class Models {
 public:
  static const Models& get() {
    static const Models models;
    return models;
  }

  const std::string& problem() const { return problem_; }
  fs::path folder(const std::string& name) const { return folder_.path() / "models" / name; }
  fs::path text(const std::string& language) const { return folder_.path() / ("text." + language); }

 private:
  Models() {
    for (const std::string language : {"en", "de"}) {
      std::vector<std::string> lines = kAwkward, more;
      if (has_real_text()) {
        more =
            read_lines(fs::path(LOCKSTEP_SHARED) / "data/multi30k" / ("val." + language + ".gz"));
        more.resize(400);
      } else {  // no translations, but text
        const char* page = language == "en" ? "docs/translation.md" : "docs/training.md";
        more = read_lines(fs::path(LOCKSTEP_SOURCE) / page);
        more.resize(250);
      }
      lines.insert(lines.end(), more.begin(), more.end());
      write_file(text(language), lines_text(lines));
    }
    const PythonResult made = run_parity_script(
        "published_models.py", fmt::format("make '{}/models' '{}' '{}'", folder_.path().string(),
                                           text("en").string(), text("de").string()));
    if (made.status != 0) problem_ = fmt::format("exit {}: {}", made.status, made.errors);
  }

  TemporaryFolder folder_;
  std::string problem_;
};

class PublishedModels : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    for (const char* module : {"transformers", "sentencepiece"}) {
      if (!python_has(module)) GTEST_SKIP() << "needs the Python package " << module;
    }
    ASSERT_EQ(Models::get().problem(), "");
  }

  fs::path folder() const { return Models::get().folder(GetParam()); }
  Json check(const char* file) const { return Json::parse(read_file(folder() / "check" / file)); }

  SavedRun open(std::vector<std::string> words = {}) const {
    return open_saved_run(folder(), {.words = std::move(words)});
  }
  static Translation& task(const SavedRun& run) {
    return dynamic_cast<Translation&>(*run.config.task);
  }
};

std::vector<int32_t> surrounded(const std::vector<int32_t>& before, const std::vector<int32_t>& ids,
                                int32_t end) {
  std::vector<int32_t> out = before;
  out.insert(out.end(), ids.begin(), ids.end());
  out.push_back(end);
  return out;
}

// Of such a line transformers makes special tokens; here it is text.
bool has_special_token(const std::string& line) {
  for (const char* token : {"eng_Latn", "<pad>", "<s>", "</s>", "<unk>", "<mask>"}) {
    if (line.find(token) != line.npos) return true;
  }
  return false;
}

TEST_P(PublishedModels, GiveTransformersIds) {
  const SavedRun run = open();
  const TranslationTokenizer& tokenizer = task(run).tokenizer();
  const SpecialIds& special = task(run).special();
  std::vector<int32_t> first;
  if (!special.primer->empty()) first = {special.bos};
  int other = 0;
  const Json wanted = check("ids.json");
  for (const Json& item : wanted) {
    const std::string line = item.at(0);
    if (has_special_token(line)) continue;
    const auto source =
        surrounded(special.source_prefix, tokenizer.encode_source(line), special.eos);
    const auto target = surrounded(first, tokenizer.encode_target(line), special.eos);
    other += source != item.at(1).get<std::vector<int32_t>>();
    EXPECT_EQ(source, item.at(1).get<std::vector<int32_t>>()) << line;
    other += target != item.at(2).get<std::vector<int32_t>>();
    EXPECT_EQ(target, item.at(2).get<std::vector<int32_t>>()) << line;
    if (other > 5) break;
  }
  EXPECT_GT(wanted.size(), 100U);
}

Tensor tensor_of(const TensorFile& file, const char* name, at::ScalarType type) {
  const TensorEntry& entry = file.get(name);
  Tensor out = torch::empty(entry.shape, type);
  std::copy(entry.data.begin(), entry.data.end(), static_cast<std::byte*>(out.data_ptr()));
  return out;
}

std::vector<int32_t> first_row(const Tensor& ids) {
  const Tensor row = ids[0].to(torch::kInt32).contiguous();
  return {row.const_data_ptr<int32_t>(), row.const_data_ptr<int32_t>() + row.numel()};
}

TEST_P(PublishedModels, GiveTransformersLogits) {
  torch::NoGradGuard no_grad;
  const TensorFile file(folder() / "check" / "logits.safetensors");
  const Tensor wanted = tensor_of(file, "logits", torch::kFloat)[0];
  const SavedRun run = open();
  const Transformer& model = task(run).model();
  const TranslationInput input{
      pack_sentences({first_row(tensor_of(file, "source", torch::kInt64))}, torch::kCPU),
      pack_sentences({first_row(tensor_of(file, "target", torch::kInt64))}, torch::kCPU)};
  for (bool fused : {true, false}) {
    ForwardContext context;
    context.numerics.fused = fused;
    const Tensor logits = model.logits(model.forward(input, context), context.numerics);
    ASSERT_EQ(logits.sizes(), wanted.sizes());
    // fp32 on both sides, sums in another order.
    EXPECT_LT((logits - wanted).abs().max().item<double>(),
              2e-5 * std::max(1.0, wanted.abs().max().item<double>()))
        << fused;
  }
}

TEST_P(PublishedModels, ScoreAsTransformersDoes) {
  const SavedRun run = open();
  std::vector<std::string> sources, targets;
  std::vector<std::vector<double>> wanted;
  for (const Json& item : check("scores.json")) {
    if (item.at(0).get<std::string>().find_first_not_of(' ') == std::string::npos) continue;
    sources.push_back(item.at(0));
    targets.push_back(item.at(1));
    wanted.push_back(item.at(2));
  }
  const auto scores = task(run).score(sources, targets);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (targets[i].find("eng_Latn") != std::string::npos) continue;
    // Theirs begin with the language, where there is one; ours are of the translation alone.
    const std::size_t given = task(run).special().primer->size();
    ASSERT_EQ(scores[i].log_probability.size() + given, wanted[i].size()) << targets[i];
    for (std::size_t t = 0; t < scores[i].log_probability.size(); ++t) {
      EXPECT_NEAR(scores[i].log_probability[t], wanted[i][t + given], 2e-4) << targets[i];
    }
  }
}

// Ids as generate() returns them, without what stands before the translation, </s> and <pad>.
std::vector<int32_t> translation_of(const std::vector<int32_t>& generated,
                                    const SpecialIds& special) {
  std::vector<int32_t> out(
      generated.begin() + 1 + static_cast<std::ptrdiff_t>(special.primer->size()), generated.end());
  out.erase(std::find(out.begin(), out.end(), special.eos), out.end());
  return out;
}

TEST_P(PublishedModels, TranslateAsGenerateDoes) {
  const Json wanted = check("translations.json");
  const std::vector<std::string> lines = wanted.at("lines");
  for (const char* how : {"run.fused=true", "run.fused=false"}) {
    SCOPED_TRACE(how);
    const SavedRun run = open({how});
    const auto translator = task(run).translator();
    const auto found = translator->translate(lines);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].find("eng_Latn") != std::string::npos) continue;
      EXPECT_EQ(found[i].front().ids, translation_of(wanted.at("ids")[i], task(run).special()))
          << lines[i];
      // transformers 4.57 takes the languages of an M2M100 for words when it decodes.
      if (GetParam() == std::string("m2m100")) continue;
      EXPECT_EQ(translator->text(found[i].front()), wanted.at("texts")[i].get<std::string>())
          << lines[i];
    }
  }
}

// bf16 is compared with the folder of that precision, whose tables are rounded too. In int8 the
// edge embeds with int8 rows, as nothing else does.
TEST_P(PublishedModels, TranslateOnTheEdgeAsHere) {
  const std::string edge = std::string(LOCKSTEP_PROGRAM) + "-translate";
  if (!fs::exists(edge)) GTEST_SKIP() << "not built: no source of SentencePiece";
  const TemporaryFolder out;
  const auto in = [&](const std::string& name) { return (out.path() / name).string(); };
  std::vector<std::string> lines = check("translations.json").at("lines");
  std::erase_if(lines, [](const std::string& l) { return l.find('\n') != l.npos; });
  write_file(in("lines"), lines_text(lines));
  const auto printed = [&](const std::string& program, const std::string& words) {
    const ProgramResult result = run_program(program, words);
    EXPECT_EQ(result.exit_code, 0) << words << "\n" << result.errors;
    return result.output;
  };
  const std::string same = " --n-best 2 --input " + in("lines");
  for (const std::string precision : {"fp32", "bf16", "int8"}) {
    SCOPED_TRACE(precision);
    const std::string how = " --precision " + precision + " --out ";
    printed(LOCKSTEP_PROGRAM,
            "export " + folder().string() + " --format edge" + how + in(precision));
    const std::string got = printed(edge, in(precision) + same);
    printed(edge, in(precision) + " --check");
    EXPECT_EQ(std::count(got.begin(), got.end(), '\n'), 2 * std::ssize(lines));
    if (precision == "int8") continue;
    std::string model = folder().string();
    if (precision == "bf16") {
      model = in("bf16-folder");
      printed(LOCKSTEP_PROGRAM, "export " + folder().string() + how + model);
    }
    EXPECT_EQ(got, printed(LOCKSTEP_PROGRAM,
                           "translate " + model + same + " decoding.precision=" + precision));
  }
  EXPECT_LT(fs::file_size(in("int8") + "/model.edge"),
            fs::file_size(in("fp32") + "/model.edge") * 6 / 10);
}

TEST_P(PublishedModels, DecodeInBf16AndInt8) {
  const std::vector<std::string> lines = {"A man rides a horse.", "Two dogs."};
  for (const char* precision : {"bf16", "int8"}) {
    const SavedRun run = open({fmt::format("decoding.precision={}", precision)});
    const auto found = task(run).translator()->translate(lines);
    for (const auto& best : found) EXPECT_TRUE(std::isfinite(best.front().score)) << precision;
  }
}

INSTANTIATE_TEST_SUITE_P(, PublishedModels,
                         ::testing::Values("swish", "untied", "separate", "m2m100", "nllb"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace lockstep
