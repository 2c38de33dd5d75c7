#include "report/draw/plot.h"

#include <gtest/gtest.h>

#include <cmath>

#include "report/draw/html_page.h"

namespace lockstep {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++out;
  return out;
}

Figure two_series() {
  Figure out{.name = "time", .title = "Time & <size>", .caption = "", .panels = {}};
  out.panels.push_back(
      {.title = "left",
       .x = {.title = "size", .logarithmic = true, .marks = {1, 4, 16}, .names = {}},
       .y = {.title = "time (s)", .from = 0, .marks = {}, .names = {}},
       .series = {{.name = "1x1", .points = {{1, 10, 1}, {4, 5, 0}, {16, NAN, 0}}},
                  {.name = "2x1", .points = {{1, 6, 0.5}, {4, 3, 0}}}}});
  return out;
}

TEST(Plot, DrawsLinesMarkersErrorBarsTicksAndALegend) {
  const std::string svg = figure_svg(two_series(), SvgColors::kFile);
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  EXPECT_EQ(count(svg, "<polyline"), 2u);
  EXPECT_EQ(count(svg, "<path"), 2u) << "error bars: only where there is an error";
  EXPECT_EQ(count(svg, "<circle"), 3u) << "two points and the legend's; no point for NaN";
  for (const char* part : {"Time &amp; &lt;size&gt;", ">16</text>", ">time (s)</text>",
                           ">1x1</text>", ">2x1</text>", "1x1: 10 ± 1 at 1"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("var(--"), std::string::npos) << "files have fixed colours";
}

TEST(Plot, OnePointStandsInTheMiddle) {
  Figure figure = two_series();
  figure.panels[0].x = {.title = "step", .whole = true};
  figure.panels[0].series = {{.name = "accuracy", .points = {{240, 0.77, 0}}}};
  const std::string svg = figure_svg(figure, SvgColors::kFile);
  EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">240</text>"), std::string::npos);
}

TEST(Plot, OnAPageColoursAreThePages) {
  const std::string svg = figure_svg(two_series(), SvgColors::kPage);
  EXPECT_NE(svg.find("var(--s1)"), std::string::npos);
  EXPECT_EQ(svg.find("#0072b2"), std::string::npos);
  EXPECT_NE(page_color_rules().find("prefers-color-scheme:dark"), std::string::npos);
}

TEST(Plot, APanelWithoutPointsSaysSo) {
  Figure figure = two_series();
  for (PlotSeries& series : figure.panels[0].series) series.points.clear();
  EXPECT_NE(figure_svg(figure, SvgColors::kFile).find("left: nothing was measured"),
            std::string::npos);
}

TEST(Plot, LogarithmicAxesLeaveOutWhatTheyCannotShow) {
  Figure figure = two_series();
  figure.panels[0].series[0].points.push_back({0, 7, 0});
  EXPECT_EQ(figure_svg(figure, SvgColors::kFile), figure_svg(two_series(), SvgColors::kFile));
}

TEST(Plot, BarsStandBesideEachOther) {
  Figure figure{.name = "bars", .title = "Bars", .caption = "", .panels = {}};
  figure.panels.push_back(
      {.title = "",
       .x = {.title = "set-up", .marks = {}, .names = {"1x1", "2x1"}},
       .y = {.title = "%", .from = 0, .marks = {}, .names = {}},
       .series = {{.name = "a", .points = {{0, 100}, {1, 80}}, .shape = PlotShape::kBars},
                  {.name = "b", .points = {{0, 90}, {1, 70}}, .shape = PlotShape::kBars}}});
  const std::string svg = figure_svg(figure, SvgColors::kFile);
  EXPECT_EQ(count(svg, "<rect"), 4u + 2u + 1u) << "bars, legend, background";
  EXPECT_TRUE(figure_csv(figure).starts_with("panel,series,x,y,error\n,a,1x1,100,0\n,a,2x1,80,"));
}

TEST(Plot, CsvQuotesWhatItMust) {
  EXPECT_EQ(csv_cell("plain"), "plain");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("say \"x\""), "\"say \"\"x\"\"\"");
}

TEST(HtmlPage, NeedsNothingElse) {
  HtmlPage page("A <b> & c");
  page.table({.header = {"x"}, .rows = {{"<1>"}}, .alignment = "r"});
  page.figure(two_series(), {{"time.csv", "text/csv", "a,b\n"}});
  const std::string text = page.text();
  EXPECT_NE(text.find("A &lt;b&gt; &amp; c"), std::string::npos);
  EXPECT_NE(text.find("<td class=\"r\">&lt;1&gt;</td>"), std::string::npos);
  EXPECT_NE(text.find("data:text/csv;base64,YSxiCg=="), std::string::npos);
  for (const char* outside : {"<script", "src=", "url(", "<link", "@import"}) {
    EXPECT_EQ(text.find(outside), std::string::npos) << outside;
  }
}

TEST(HtmlPage, Base64IsThatOfTheRfc) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace lockstep
