#include "metrics/bleu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "metrics/line_text.h"
#include "support/random_text.h"
#include "support/sacrebleu.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

// Sums of a few logarithms: equal to the reference but for the order of rounding.
constexpr double kTolerance = 1e-9;

const fs::path kReference = fs::path(LOCKSTEP_SHARED) / "data/reference/sacrebleu";

BleuConfig config_of(const Json& options) {
  BleuConfig config;
  config.tokenizer = options.value("tokenize", config.tokenizer);
  config.lowercase = options.value("lowercase", false);
  config.effective_order = options.value("effective_order", false);
  config.smoothing = options.value("smooth_method", config.smoothing);
  config.max_order = options.value("max_ngram_order", config.max_order);
  if (options.contains("smooth_value")) config.smoothing_value = options["smooth_value"];
  return config;
}

std::string tokens_of(const std::string& tokenizer, std::string_view line) {
  std::string text = bleu_tokenizers().get(tokenizer)(line);
  std::vector<std::string_view> words;
  split_unicode_words(text, words);
  Lines out(words.begin(), words.end());
  return join(out, "|");
}

TEST(BleuTokenizer, OfThirteenAFollowsMteval) {
  EXPECT_EQ(tokens_of("13a", "Hello, world! It's 3.14, or 1,000."),
            "Hello|,|world|!|It's|3.14|,|or|1,000|.");
  EXPECT_EQ(tokens_of("13a", "well-known 5-year &quot;x&quot; &amp;lt; a/b"),
            "well-known|5|-|year|\"|x|\"|<|a|/|b");
  EXPECT_EQ(tokens_of("13a", "a<skipped>b wo-\nrd\nnext..."), "ab|word|next|.|.|.");
  EXPECT_EQ(tokens_of("13a", "„Straße“ – 5.Mai ü.x"), "„Straße“|–|5|.|Mai|ü|.|x");
  EXPECT_EQ(tokens_of("13a", ""), "");
}

TEST(BleuTokenizer, SplitsAtTheWhiteSpaceOfUnicode) {
  EXPECT_EQ(tokens_of("none", "a\u00A0b\u3000c\u2009d\u1680e\u2028f\u0085g\u202Fh\u205Fi\x1Cj"),
            "a|b|c|d|e|f|g|h|i|j");
  EXPECT_EQ(tokens_of("none", "a\u200Bb\uFEFFc\u180Ed"), "a\u200Bb\uFEFFc\u180Ed");  // none is
  EXPECT_EQ(strip_right("x \u3000\u00A0\t"), "x");
  EXPECT_EQ(strip_right(" \u2003 "), "");
  EXPECT_EQ(strip_right(" ü"), " ü");
}

TEST(BleuTokenizer, WithAnUnknownNameIsAConfigError) {
  try {
    Bleu bleu({.tokenizer = "13b"});
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("no tokenizer \"13b\"; did you mean 13a?"),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(Bleu({.smoothing = "expo"}), ConfigError);
  EXPECT_THROW(Bleu({.max_order = 0}), ConfigError);
  EXPECT_THROW(Bleu({.max_order = 9}), ConfigError);
}

TEST(Bleu, OfATextWithItselfIsHundred) {
  Lines text{"The dog bit the man.", "It was not unexpected."};
  EXPECT_NEAR(Bleu().corpus(text, {text}).score, 100, kTolerance);
}

TEST(Bleu, RefusesReferencesOfAnotherLength) {
  EXPECT_THROW(Bleu().corpus({"a", "b"}, {{"a"}}), DataError);
  EXPECT_THROW(Bleu().corpus({"a"}, {}), DataError);
}

TEST(Bleu, TakesTheNearestReferenceLengthAndOfEqualsTheShorter) {
  auto nearest = [](const std::string& hypothesis, const Lines& references) {
    return Bleu().segment_statistics(hypothesis, references).reference_tokens;
  };
  EXPECT_EQ(nearest("a b c", {"a b c d e", "a b"}), 2);
  EXPECT_EQ(nearest("a b c", {"a", "a b c d e"}), 1);
  EXPECT_EQ(nearest("a b c", {"a b c d e", "a"}), 1);
}

TEST(Bleu, StatisticsOfPartsAddUpToThoseOfTheWhole) {
  Lines hypotheses{"the cat sat", "on a mat .", "", "and slept there"};
  Lines references{"the cat sat down", "on the mat .", "x", "and slept"};
  Bleu bleu;
  BleuStatistics sum;
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    sum += bleu.segment_statistics(hypotheses[i], {references[i]});
  }
  EXPECT_EQ(sum, bleu.corpus_statistics(hypotheses, {references}));
  EXPECT_EQ(sum, BleuStatistics::from_values(sum.values()));
  EXPECT_EQ(sum.values()[0], 10);  // hypothesis tokens
}

TEST(Bleu, EqualsThePublishedCases) {
  if (!fs::exists(kReference)) GTEST_SKIP() << "no reference data at " << kReference;
  Json cases = Json::parse(read_file(kReference / "cases.json"));
  for (const Json& c : cases["corpus"]) {
    Bleu bleu(config_of(c["args"]));
    double score = bleu.corpus(c["hyps"].get<Lines>(), c["refs"].get<std::vector<Lines>>()).score;
    EXPECT_NEAR(score, c["bleu"].get<double>(), 1e-6) << c["args"];  // given with so many digits
  }
  const Json& first = cases["corpus"][0];
  for (const Json& c : cases["max_order"]) {
    Bleu bleu({.max_order = c[0].get<int>()});
    double score =
        bleu.corpus(first["hyps"].get<Lines>(), first["refs"].get<std::vector<Lines>>()).score;
    EXPECT_NEAR(score, c[1].get<double>(), 0.005) << c;
  }
  for (const Json& c : cases["raw"]) {
    // What upstream's raw_corpus_bleu sets.
    Bleu bleu({.tokenizer = "none",
               .effective_order = true,
               .smoothing = "floor",
               .smoothing_value = 0.01});
    double score = bleu.corpus(c["hyps"].get<Lines>(), c["refs"].get<std::vector<Lines>>()).score;
    EXPECT_NEAR(score / 100, c["bleu_over_100"].get<double>(), kTolerance) << c;
  }
}

struct Multi30k {
  Lines hypotheses, references;
  Json expected;
};

std::optional<Multi30k> multi30k() {
  if (!fs::exists(kReference)) return std::nullopt;
  return Multi30k{read_lines(kReference / "multi30k_val.perturbed.de.gz"),
                  read_lines(fs::path(LOCKSTEP_SHARED) / "data/multi30k/val.de.gz"),
                  Json::parse(read_file(kReference / "multi30k_val.expected.json"))["expected"]};
}

TEST(Bleu, EqualsSacrebleuOnMulti30k) {
  std::optional<Multi30k> data = multi30k();
  if (!data) GTEST_SKIP() << "no reference data at " << kReference;
  for (const char* tokenizer : {"13a", "none", "intl", "char"}) {
    SCOPED_TRACE(tokenizer);
    const Json& expected = data->expected[std::string("bleu_") + tokenizer];
    BleuScore score = Bleu({.tokenizer = tokenizer}).corpus(data->hypotheses, {data->references});
    EXPECT_NEAR(score.score, expected["score"].get<double>(), kTolerance);
    EXPECT_NEAR(score.brevity_penalty, expected["bp"].get<double>(), kTolerance);
    EXPECT_EQ(score.statistics.hypothesis_tokens, expected["sys_len"]);
    EXPECT_EQ(score.statistics.reference_tokens, expected["ref_len"]);
    for (int n = 0; n < 4; ++n) {
      EXPECT_NEAR(score.precisions[n], expected["precisions"][n].get<double>(), kTolerance);
      EXPECT_EQ(score.statistics.matches[n], expected["counts"][n]);
      EXPECT_EQ(score.statistics.totals[n], expected["totals"][n]);
    }
  }
  Bleu lower({.lowercase = true});
  EXPECT_NEAR(lower.corpus(data->hypotheses, {data->references}).score,
              data->expected["bleu_13a_lc"]["score"].get<double>(), kTolerance);
  Bleu sentences({.effective_order = true});
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(sentences.sentence(data->hypotheses[i], {data->references[i]}).score,
                data->expected["sentence_bleu_first20"][i].get<double>(), kTolerance)
        << i;
  }
}

TEST(Bleu, PrintsTheLineOfTheSacrebleuCommand) {
  std::optional<Multi30k> data = multi30k();
  if (!data) GTEST_SKIP() << "no reference data at " << kReference;
  Bleu bleu;
  std::string line = bleu.format(bleu.corpus(data->hypotheses, {data->references}));
  EXPECT_EQ(line,
            "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 68.1 "
            "100.0/83.4/72.1/63.2 (BP = 0.868 ratio = 0.876 hyp_len = 11236 ref_len = 12825)");
  if (!python_has("sacrebleu")) GTEST_SKIP() << "no sacrebleu for " << LOCKSTEP_PYTHON;
  TemporaryFolder folder;
  std::string hypotheses = (folder.path() / "hyp").string();
  write_file(hypotheses, join(data->hypotheses, "\n") + "\n");
  std::string references = (folder.path() / "ref").string();
  write_file(references, join(data->references, "\n") + "\n");
  PythonResult result =
      run_python(fmt::format("-m sacrebleu '{}' -i '{}' -f text", references, hypotheses));
  ASSERT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(trim(result.output), line);
}

Json random_bleu_cases() {
  RandomText random(20170612);
  const std::vector<Json> kSmoothings{
      {{"smooth_method", "exp"}},   {{"smooth_method", "none"}},
      {{"smooth_method", "floor"}}, {{"smooth_method", "floor"}, {"smooth_value", 0.25}},
      {{"smooth_method", "add-k"}}, {{"smooth_method", "add-k"}, {"smooth_value", 0.5}}};
  Json cases = Json::array();
  for (int i = 0; i < 600; ++i) {
    Json options = kSmoothings[i % kSmoothings.size()];
    options["tokenize"] = Lines{"13a", "13a", "none", "intl", "char"}[i % 5];
    options["lowercase"] = i % 4 == 1;
    options["effective_order"] = i % 3 == 1;
    options["max_ngram_order"] = i % 7 == 0 ? 1 + i % 6 : 4;
    Lines hypotheses;
    std::vector<Lines> references(1 + i % 3);
    for (int64_t left = 1 + random.up_to(i % 2 == 0 ? 0 : 20); left > 0; --left) {
      std::string truth = random.line();
      hypotheses.push_back(random.variant(truth));
      for (Lines& set : references) set.push_back(random.variant(truth));
    }
    cases.push_back({{"metric", "BLEU"},
                     {"hypotheses", hypotheses},
                     {"references", references},
                     {"options", options}});
  }
  return cases;
}

TEST(Bleu, EqualsSacrebleuOnRandomText) {
  if (!python_has("sacrebleu")) GTEST_SKIP() << "no sacrebleu for " << LOCKSTEP_PYTHON;
  Json cases = random_bleu_cases();
  Json expected = sacrebleu_scores(cases);
  ASSERT_EQ(expected.size(), cases.size());
  int scored = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].dump());
    Bleu bleu(config_of(cases[i]["options"]));
    auto references = cases[i]["references"].get<std::vector<Lines>>();
    BleuScore score = bleu.corpus(cases[i]["hypotheses"].get<Lines>(), references);
    EXPECT_NEAR(score.score, expected[i]["score"].get<double>(), kTolerance);
    EXPECT_EQ(bleu.format(score, static_cast<int>(references.size())),
              expected[i]["line"].get<std::string>());
    EXPECT_EQ(score.statistics.hypothesis_tokens, expected[i]["sys_len"]);
    EXPECT_EQ(score.statistics.reference_tokens, expected[i]["ref_len"]);
    bool added = cases[i]["options"]["smooth_method"] == "add-k";  // changes upstream's counts
    for (std::size_t n = 0; n < score.precisions.size(); ++n) {
      EXPECT_NEAR(score.precisions[n], expected[i]["precisions"][n].get<double>(), kTolerance);
      if (added) continue;
      EXPECT_EQ(score.statistics.matches[n], expected[i]["counts"][n]);
      EXPECT_EQ(score.statistics.totals[n], expected[i]["totals"][n]);
    }
    scored += score.score > 0 && score.score < 100;
    if (HasFailure()) return;  // one case says enough
  }
  EXPECT_GT(scored, 300);  // the cases are neither all wrong nor all right
}

}  // namespace
}  // namespace lockstep
