#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "data/pages/page_alignment.h"
#include "data/pages/page_blocks.h"

namespace lockstep {
namespace {

using Texts = std::vector<std::string>;

Texts texts_of(const std::vector<PageBlock>& blocks) {
  Texts out;
  for (const PageBlock& block : blocks) out.push_back(block.kind + "|" + block.text);
  return out;
}

TEST(MarkupBlocks, KeepTheTextOfInlineElements) {
  EXPECT_EQ(
      texts_of(markup_blocks("<html><head><title>not read</title></head><body>\n"
                             "<h1 id=\"top\">Save &amp; <b>close</b></h1>"
                             "<p class=\"x\">Press <kbd>Ctrl</kbd>+<kbd>S</kbd>\n  twice.<br/>"
                             "Then&nbsp;go&#x2026;</p><pre>int x;</pre>"
                             "<!-- <p>no</p> --><ul><li>one &kate; 3 &lt; 4</li></ul>")),
      (Texts{"h1|Save & close", "p|Press Ctrl+S twice. Then go…", "li|one kate 3 < 4"}));
}

TEST(MarkupBlocks, HaveIdsAndHeadings) {
  const std::vector<PageBlock> blocks =
      markup_blocks("<section xml:id=\"s\"><title>A</title><p id=\"par_id1\" dir=\"auto\">B</p>");
  ASSERT_EQ(blocks.size(), 2u);
  EXPECT_TRUE(blocks[0].is_heading);
  EXPECT_FALSE(blocks[1].is_heading);
  EXPECT_EQ(blocks[1].id, "par_id1");
}

TEST(MarkupBlocks, ComeOutOfBrokenPages) {
  EXPECT_EQ(texts_of(markup_blocks("<p>a < b <p>c<unclosed")), (Texts{"p|a < b", "p|c"}));
  EXPECT_TRUE(markup_blocks("<script>never closed").empty());
  EXPECT_TRUE(markup_blocks("").empty());
}

TEST(ManualBlocks, HaveNoMacros) {
  const std::string page =
      ".\\\" a comment\n.TH LS 1 \"2022\"\n.SH NAME\nls \\- list directory contents\n"
      ".SH \"SEE ALSO\"\nList the\n.B FILEs\nof \\fIdir\\fR, by\n.BR size (1).\n.PP\n"
      "Next \\(lqquoted\\(rq one.\n.nf\ncode is left out\n.fi\n.TP\n\\fB\\-a\\fR\nshow \\e.\n"
      ".IP \"\\(bu\" 2\nan item\n";
  EXPECT_EQ(texts_of(manual_blocks(page)),
            (Texts{".SH|NAME", ".PP|ls - list directory contents", ".SH|SEE ALSO",
                   ".PP|List the FILEs of dir, by size(1).", ".PP|Next “quoted” one.", ".TP|-a",
                   ".TP text|show \\.", ".IP tag|•", ".IP|an item"}));
}

TEST(ManualBlocks, WriteFontsInEitherWay) {  // po4a turns macros into escapes
  EXPECT_EQ(texts_of(manual_blocks(".TP\n.B \\-\\-all\ndo all\n")),
            texts_of(manual_blocks(".TP\n\\fB\\-\\-all\\fP\ndo all\n")));
}

TEST(ManualBlocks, LeaveMdocAlone) {
  EXPECT_TRUE(manual_blocks(".Dd May 1\n.Dt X 1\n.Sh NAME\n.Nm x\n").empty());
}

PageBlock block(const std::string& kind, const std::string& text, const std::string& id = "") {
  return {kind, id, text, kind == "h1"};
}

TEST(AlignedPages, AreWhole) {
  EXPECT_EQ(align_blocks({block("h1", "A"), block("p", "b")}, {block("h1", "X"), block("p", "y")}),
            (std::vector<TextPair>{{"A", "X"}, {"b", "y"}}));
}

TEST(AlignedPages, LeaveOutSectionsThatDiffer) {
  const std::vector<PageBlock> source{block("h1", "A"), block("p", "b"), block("h1", "C"),
                                      block("p", "d")};
  std::vector<PageBlock> target{block("h1", "W"), block("p", "x"), block("p", "more"),
                                block("h1", "Y"), block("p", "z")};
  const std::vector<TextPair> second{{"C", "Y"}, {"d", "z"}};
  EXPECT_EQ(align_blocks(source, target), second);
  target.push_back(block("h1", "TRANSLATORS"));  // a section that only translations have
  target.push_back(block("p", "names"));
  EXPECT_EQ(align_blocks(source, target), second);
  target.push_back(block("h1", "another"));
  EXPECT_TRUE(align_blocks(source, target).empty());
}

TEST(AlignedPages, GoByIdsWhereThereAreSome) {
  EXPECT_EQ(align_blocks({block("p", "a", "1"), block("p", "b", "2"), block("p", "c", "3"),
                          block("p", "d", "3")},
                         {block("p", "y", "2"), block("div", "x", "1"), block("p", "z", "4")}),
            (std::vector<TextPair>{{"a", "x"}, {"b", "y"}}));
}

}  // namespace
}  // namespace lockstep
