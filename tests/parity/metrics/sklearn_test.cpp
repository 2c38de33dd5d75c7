// Scores of classes and of values against scikit-learn and scipy.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "metrics/classification_scores.h"
#include "metrics/correlation.h"
#include "support/python.h"

namespace lockstep {
namespace {

struct Case {
  int classes = 0;  // 0: values
  std::vector<double> labels, answers;
};

std::vector<double> figures_of(const Case& c) {
  if (c.classes == 0) {
    return {pearson(c.labels, c.answers), spearman(c.labels, c.answers),
            mean_squared_error(c.labels, c.answers)};
  }
  Confusion counts(std::vector<std::string>(static_cast<std::size_t>(c.classes)));
  for (std::size_t i = 0; i < c.labels.size(); ++i) {
    ++counts.at(static_cast<int64_t>(c.labels[i]), static_cast<int64_t>(c.answers[i]));
  }
  const ClassificationScores s = classification_scores(counts, 1);
  std::vector<double> out = {s.accuracy};
  for (const PrecisionRecall& p : {s.macro, s.weighted, s.micro, s.binary}) {
    out.insert(out.end(), {p.precision, p.recall, p.f1});
  }
  return out;
}

TEST(SklearnScores, AreOurs) {
  for (const char* module : {"sklearn", "scipy"}) {
    if (!python_has(module)) GTEST_SKIP() << "needs the Python package " << module;
  }
  std::mt19937 random(3);
  std::vector<Case> cases;
  for (int classes : {0, 2, 2, 3, 7, 0, 2, 9}) {
    for (int items : {2, 10, 200}) {  // with 9 classes and 10 items some classes never occur
      Case c{classes, {}, {}};
      for (int i = 0; i < items; ++i) {
        // Values of one digit: many are equal.
        const double label = static_cast<double>(random() % (classes == 0 ? 10 : classes));
        const bool right = random() % 3 != 0;
        const double other = static_cast<double>(random() % (classes == 0 ? 10 : classes));
        c.labels.push_back(label);
        c.answers.push_back(right ? label : other);
      }
      if (classes == 0) c.answers[0] += 0.5;  // not constant
      if (classes == 0) c.labels[0] += 20;
      cases.push_back(c);
    }
  }
  TemporaryFolder folder;
  std::string text;
  for (const Case& c : cases) {
    text +=
        fmt::format("{}\t{}\t{}\n", c.classes, fmt::join(c.labels, " "), fmt::join(c.answers, " "));
  }
  write_file(folder.path() / "cases", text);
  const PythonResult theirs =
      run_parity_script("sklearn_scores.py", (folder.path() / "cases").string());
  ASSERT_EQ(theirs.status, 0) << theirs.errors;
  std::istringstream lines(theirs.output);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::string line;
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream numbers(line);
    for (double own : figures_of(cases[i])) {
      double expected = 0;
      ASSERT_TRUE(numbers >> expected) << "case " << i << ": " << line;
      EXPECT_NEAR(own, expected, 1e-12) << "case " << i << ": " << line;
    }
  }
}

}  // namespace
}  // namespace lockstep
