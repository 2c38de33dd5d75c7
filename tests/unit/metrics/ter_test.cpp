#include "metrics/ter.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "metrics/ter_shifts.h"
#include "support/random_text.h"
#include "support/sacrebleu.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using Lines = std::vector<std::string>;

double ter(const std::string& hypothesis, const Lines& references, const TerConfig& config = {}) {
  std::vector<Lines> sets;
  for (const std::string& reference : references) sets.push_back({reference});
  Ter metric(config);
  return metric.value(corpus_sums(metric, {hypothesis}, sets)).score;
}

TEST(Ter, CountsEditsOverTheWordsOfTheReference) {
  EXPECT_EQ(ter("a b c d", {"a b c d"}), 0);
  EXPECT_EQ(ter("a b x d", {"a b c d"}), 25);
  EXPECT_EQ(ter("a b c d e", {"a b c d"}), 25);
  EXPECT_EQ(ter("", {"a b c d"}), 100);
  EXPECT_EQ(ter("A B", {"a b"}), 0);
  EXPECT_EQ(ter("A B", {"a b"}, {.case_sensitive = true}), 100);
}

TEST(Ter, CountsAShiftOfAnyLengthAsOneEdit) {
  EXPECT_EQ(ter("d e a b c", {"a b c d e"}), 20);
  EXPECT_EQ(ter("b a", {"a b"}), 50);
}

TEST(Ter, TakesTheNearestReferenceOverTheirMeanLength) {
  EXPECT_EQ(ter("a b c", {"a b c", "a b x y z"}), 0);
  EXPECT_EQ(ter("a b", {"a b c", "x y z a b"}), 100.0 / 4);
}

TEST(Ter, OfEmptyReferencesIsHundredOrNought) {
  EXPECT_EQ(ter("a", {""}), 100);
  EXPECT_EQ(ter("", {""}), 0);
}

TEST(Ter, IsSignedAsSacrebleuDoes) {
  EXPECT_EQ(signature_text(signature_of(Ter({.normalized = true}), {})),
            "nrefs:1|case:lc|tok:tercom|norm:yes|punct:yes|asian:no|version:2.6.0");
}

TEST(ShiftSearch, StopsAfterAThousandShiftsWeighed) {
  // All words equal in halves: thousands of places to shift to.
  std::vector<uint32_t> hypothesis(300), reference(300);
  for (std::size_t i = 0; i < 300; ++i) {
    hypothesis[i] = i % 3 == 0 ? 1 : 2;
    reference[i] = i % 5 == 0 ? 2 : 1;
  }
  int64_t edits = ShiftSearch().edits(hypothesis, reference);
  EXPECT_GT(edits, 0);
  EXPECT_LE(edits, 300);
}

// Sentences that share words in other places and numbers, and some with absurd lengths.
Json random_ter_cases() {
  RandomText random(20061108);
  Json cases = Json::array();
  for (int i = 0; i < 150; ++i) {
    Json options{{"normalized", i % 2 == 1},
                 {"no_punct", i % 5 == 1},
                 {"asian_support", i % 3 == 1},
                 {"case_sensitive", i % 4 == 1}};
    Lines hypotheses;
    std::vector<Lines> references(1 + i % 3);
    for (int64_t left = 1 + random.up_to(i % 2 == 0 ? 0 : 3); left > 0; --left) {
      std::string truth = random.line();
      if (i % 9 == 0) truth += " " + random.line() + " " + random.line();
      hypotheses.push_back(i % 50 == 3 ? "the cat" : random.shuffled(random.variant(truth)));
      for (Lines& set : references) {
        set.push_back(i % 50 == 7 ? truth + truth : random.variant(truth));
      }
    }
    cases.push_back({{"metric", "TER"},
                     {"hypotheses", hypotheses},
                     {"references", references},
                     {"options", options}});
  }
  return cases;
}

TEST(Ter, EqualsSacrebleuOnRandomText) {
  if (!python_has("sacrebleu")) GTEST_SKIP() << "no sacrebleu for " << LOCKSTEP_PYTHON;
  Json cases = random_ter_cases();
  Json expected = sacrebleu_scores(cases);
  int scored = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(cases[i].dump());
    const Json& o = cases[i]["options"];
    Ter metric({.case_sensitive = o["case_sensitive"],
                .normalized = o["normalized"],
                .no_punctuation = o["no_punct"],
                .asian_support = o["asian_support"]});
    auto hypotheses = cases[i]["hypotheses"].get<Lines>();
    auto references = cases[i]["references"].get<std::vector<Lines>>();
    std::vector<double> flat;
    for (const Json& segment : expected[i]["segments"]) {
      for (const Json& value : segment) flat.push_back(value);
    }
    std::vector<double> statistics =
        metric.statistics(hypotheses, references, 0, hypotheses.size());
    EXPECT_EQ(statistics, flat);
    double score = metric.value(sum_statistics(statistics, 2)).score;
    EXPECT_EQ(score, expected[i]["score"].get<double>());
    scored += score > 0 && score < 100;
    if (HasFailure()) return;  // one case says enough
  }
  EXPECT_GT(scored, 100);  // the cases are neither all wrong nor all right
}

}  // namespace
}  // namespace lockstep
