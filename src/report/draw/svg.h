// Pieces of SVG: escaped text, and colours that a page may change with its theme.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// Escapes &, <, > and " as entities, for element text and attributes of SVG and HTML.
std::string escape_xml(std::string_view text);

// kFile: fixed colours on white, for papers and other programs. kPage: colours are variables of the
// surrounding page (report/draw/html_page.h), which has a light and a dark set of them.
enum class SvgColors { kFile, kPage };

// Colours by role. Series use Okabe and Ito's set, which people with any colour blindness can tell
// apart ("Color Universal Design", 2008), without its yellow, too faint on white; they are lighter
// in the page's dark set.
struct SvgPaint {
  SvgColors colors = SvgColors::kFile;
  static constexpr int kSeries = 7;

  std::string ink() const;    // text, axes
  std::string faint() const;  // less important text
  std::string grid() const;
  std::string paper() const;             // the background
  std::string series(int number) const;  // from 0; repeats after kSeries
};

// Returns the page's two sets of colours as CSS rules.
std::string page_color_rules();

// Estimates the width of text in a usual sans serif, in units of its size, for layout without
// access to a font.
double text_width(std::string_view text);

}  // namespace lockstep
