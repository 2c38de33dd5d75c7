#include "report/timeline/timeline_figure.h"

#include <gtest/gtest.h>

#include <string>

#include "support/invented_run.h"

namespace lockstep {
namespace {

int times_in(const std::string& text, const std::string& words) {
  int out = 0;
  for (std::size_t at = 0; (at = text.find(words, at)) != std::string::npos; ++at) ++out;
  return out;
}

TEST(TimelineFigure, DrawsTheStepsInTheMiddleOfEveryRank) {
  const auto figure = timeline_figure(invented_spans(11, 20, 1000));
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->title, "Timeline of steps 14 to 17");
  EXPECT_NE(figure->caption.find("3,000 ms apart, known to 0.2 ms"), std::string::npos)
      << figure->caption;
  const std::string svg = figure_svg(*figure, SvgColors::kFile);
  EXPECT_EQ(times_in(svg, ">backward of step "), 8) << "4 steps of 2 ranks";
  EXPECT_EQ(times_in(svg, ">gradient bucket 1 of step 15, rank 1: 30 ms, 2.0 MB<"), 1);
  EXPECT_EQ(times_in(svg, ">step 14<"), 1);
  EXPECT_EQ(times_in(svg, ">rank 1<"), 1);
  EXPECT_EQ(times_in(svg, ">evaluation<"), 0) << "the legend has what is drawn";
  EXPECT_EQ(times_in(svg, ">optimizer<"), 1);
  EXPECT_NE(figure_svg(*figure, SvgColors::kPage).find("var(--s0)"), std::string::npos);
}

TEST(TimelineFigure, OfManyRanksSomeAreShown) {
  SpanFile file = invented_spans(1, 1, 1000);
  while (file.ranks.size() < 20) {
    file.ranks.push_back(file.ranks[0]);
    file.ranks.back().rank = static_cast<int>(file.ranks.size()) - 1;
  }
  const auto figure = timeline_figure(std::move(file));
  ASSERT_TRUE(figure);
  EXPECT_EQ(figure->title, "Timeline of step 1");
  EXPECT_NE(figure->caption.find("8 of 20 ranks."), std::string::npos);
  const std::string svg = figure_svg(*figure, SvgColors::kFile);
  EXPECT_EQ(times_in(svg, ">rank 0<"), 1);
  EXPECT_EQ(times_in(svg, ">rank 19<"), 1);
}

TEST(TimelineFigure, IsNotThereWithoutSpans) {
  TemporaryFolder folder;
  EXPECT_FALSE(timeline_figure(folder.path()));
  SpanFile empty;
  empty.first_step = empty.last_step = 1;
  EXPECT_FALSE(timeline_figure(empty));
  write_span_file(folder.path() / "trace" / "steps_1-2.json", invented_spans(1, 2, 0));
  EXPECT_TRUE(timeline_figure(folder.path()));
}

}  // namespace
}  // namespace lockstep
