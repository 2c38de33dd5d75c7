// Pieces of SVG: text that is safe in it, and colours that a page may change with its theme.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// &, <, > and " as entities; for element text and attributes of SVG and HTML.
std::string escape_xml(std::string_view text);

// kFile: fixed colours on white, for papers and other programs. kPage: colours are variables of the
// page around it (report/draw/html_page.h), which has a light and a dark set of them.
enum class SvgColors { kFile, kPage };

// Colours by role. Series: Okabe and Ito's set, which people with any colour blindness tell apart
// ("Color Universal Design", 2008), without its yellow, too faint on white; in the page's dark set
// they are lighter.
struct SvgPaint {
  SvgColors colors = SvgColors::kFile;
  static constexpr int kSeries = 7;

  std::string ink() const;    // text, axes
  std::string faint() const;  // less important text
  std::string grid() const;
  std::string paper() const;             // behind it all
  std::string series(int number) const;  // from 0; begins again after kSeries
};

// The page's two sets, as rules of CSS.
std::string page_color_rules();

// About how wide text set in a usual sans serif is, in units of its size: for layout, where no font
// can be asked.
double text_width(std::string_view text);

}  // namespace lockstep
