// Cuts pages of help, handbooks and manuals into their paragraphs. A page and its translation were
// made from one list of messages (po4a, itstool), so both have the same paragraphs in one order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

// A heading, paragraph, cell or the like, as running text with single spaces.
struct PageBlock {
  std::string kind;  // the element or macro it is in: "p", "title", ".TP"
  std::string id;    // of the element, where it has one
  std::string text;
  bool is_heading = false;  // it begins a section
};

// Returns the blocks of HTML, DocBook or Mallard (UTF-8). Inline elements are removed and their
// text kept; programs, styles, comments and credits are left out. Character references are
// resolved; of an entity that only the page's DTD defines (&kate;) the name remains. Never fails:
// markup that is broken gives fewer or longer blocks.
std::vector<PageBlock> markup_blocks(std::string_view page);

// Returns the blocks of a manual page in the man macros of troff (UTF-8), as man(7) and
// groff_char(7) define them; without the title line, examples and comments. Returns nothing for
// pages in the mdoc macros, whose words are pieces of macros.
std::vector<PageBlock> manual_blocks(std::string_view page);

}  // namespace lockstep
