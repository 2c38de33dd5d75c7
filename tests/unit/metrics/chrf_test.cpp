#include "metrics/chrf.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "support/expect_error.h"
#include "support/random_text.h"
#include "support/sacrebleu.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

constexpr double kChrfTolerance =
    1e-9;  // the order of rounding; in fact the operations are the same

const fs::path kChrfReference = fs::path(LOCKSTEP_SHARED) / "data/reference/sacrebleu";

TEST(Chrf, OfATextWithItselfIsHundredAndWithAnotherAlphabetNought) {
  Lines text{"The dog bit the man.", "It was not unexpected."};
  EXPECT_NEAR(Chrf().corpus(text, {text}), 100, kChrfTolerance);
  EXPECT_EQ(Chrf().corpus({"abc"}, {{"xyz"}}), 0);
}

TEST(Chrf, IsNamedAndSignedAsSacrebleuDoes) {
  EXPECT_EQ(Chrf().name(), "chrF2");
  Chrf plus({.word_order = 2, .lowercase = true});
  EXPECT_EQ(plus.name(), "chrF2++");
  EXPECT_EQ(signature_text(signature_of(plus, {.references = 2})),
            "nrefs:2|case:lc|eff:yes|nc:6|nw:2|space:no|version:2.6.0");
  EXPECT_EQ(signature_text(signature_of(plus, {}), true), "#:1|c:lc|e:yes|nc:6|nw:2|s:no|v:2.6.0");
}

TEST(Chrf, StatisticsOfPartsAddUpToThoseOfTheWhole) {
  Lines hypotheses{"the cat sat", "on a mat .", "", "and slept there"};
  Lines references{"the cat sat down", "on the mat .", "x", "and slept"};
  Chrf chrf({.word_order = 2});
  std::vector<double> sums(chrf.value_count());
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    std::vector<double> part = chrf.statistics(hypotheses, {references}, i, i + 1);
    ASSERT_EQ(part.size(), sums.size());
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += part[k];
  }
  EXPECT_EQ(sums, corpus_sums(chrf, hypotheses, {references}));
}

TEST(Chrf, RefusesWhatItCannotCompute) {
  EXPECT_THROW(Chrf({.char_order = 0}), ConfigError);
  EXPECT_THROW(Chrf({.word_order = -1}), ConfigError);
  EXPECT_THROW(Chrf().corpus({"a", "b"}, {{"a"}}), DataError);
  EXPECT_THROW(Chrf().corpus({"a"}, {}), DataError);
}

TEST(Chrf, EqualsSacrebleuOnMulti30k) {
  if (!fs::exists(kChrfReference)) GTEST_SKIP() << "no reference data at " << kChrfReference;
  Lines hypotheses = read_lines(kChrfReference / "multi30k_val.perturbed.de.gz");
  Lines references = read_lines(fs::path(LOCKSTEP_SHARED) / "data/multi30k/val.de.gz");
  Json expected = Json::parse(read_file(kChrfReference / "multi30k_val.expected.json"))["expected"];
  EXPECT_NEAR(Chrf().corpus(hypotheses, {references}), expected["chrf2"].get<double>(),
              kChrfTolerance);
  EXPECT_NEAR(Chrf({.word_order = 2}).corpus(hypotheses, {references}),
              expected["chrf2pp"].get<double>(), kChrfTolerance);
}

Json random_chrf_cases() {
  RandomText random(20150911);
  Json cases = Json::array();
  for (int i = 0; i < 400; ++i) {
    Json options{{"char_order", i % 5 == 0 ? 1 + i % 9 : 6},
                 {"word_order", i % 3},
                 {"beta", 1 + i % 3},
                 {"lowercase", i % 4 == 1},
                 {"whitespace", i % 6 == 1},
                 {"eps_smoothing", i % 7 == 1}};
    Lines hypotheses;
    std::vector<Lines> references(1 + i % 3);
    for (int64_t left = 1 + random.up_to(i % 2 == 0 ? 0 : 12); left > 0; --left) {
      std::string truth = random.line();
      hypotheses.push_back(random.variant(truth));
      for (Lines& set : references) set.push_back(random.variant(truth));
    }
    cases.push_back({{"metric", "CHRF"},
                     {"hypotheses", hypotheses},
                     {"references", references},
                     {"options", options}});
  }
  return cases;
}

TEST(Chrf, EqualsSacrebleuOnRandomText) {
  if (!python_has("sacrebleu")) GTEST_SKIP() << "no sacrebleu for " << LOCKSTEP_PYTHON;
  Json cases = random_chrf_cases();
  Json expected = sacrebleu_scores(cases);
  int scored = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].dump());
    const Json& o = cases[i]["options"];
    Chrf chrf({.char_order = o["char_order"],
               .word_order = o["word_order"],
               .beta = o["beta"],
               .lowercase = o["lowercase"],
               .whitespace = o["whitespace"],
               .eps_smoothing = o["eps_smoothing"]});
    auto hypotheses = cases[i]["hypotheses"].get<Lines>();
    auto references = cases[i]["references"].get<std::vector<Lines>>();
    std::vector<double> flat;
    for (const Json& segment : expected[i]["segments"]) {
      for (const Json& value : segment) flat.push_back(value);
    }
    std::vector<double> statistics = chrf.statistics(hypotheses, references, 0, hypotheses.size());
    EXPECT_EQ(statistics, flat);
    double score = chrf.value(sum_statistics(statistics, chrf.value_count())).score;
    EXPECT_EQ(score, expected[i]["score"].get<double>());
    scored += score > 0 && score < 100;
    if (HasFailure()) return;  // one case says enough
  }
  EXPECT_GT(scored, 300);  // the cases are neither all wrong nor all right
}

}  // namespace
}  // namespace lockstep
