#include "report/draw/svg.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"

namespace lockstep {

namespace {

struct Role {
  const char *name, *light, *dark;
};

constexpr Role kInk = {"ink", "#1b1f24", "#e6e8eb"}, kFaint = {"faint", "#57606a", "#a2abb5"},
               kGrid = {"grid", "#e1e4e8", "#353b43"}, kPaper = {"paper", "#ffffff", "#15181c"};
constexpr std::array<Role, SvgPaint::kSeries> kSeriesRoles = {{{"s0", "#0072b2", "#5fb2e6"},
                                                               {"s1", "#d55e00", "#ff9a57"},
                                                               {"s2", "#009e73", "#3fd0a4"},
                                                               {"s3", "#cc79a7", "#e7a3c8"},
                                                               {"s4", "#b97f00", "#f0b93a"},
                                                               {"s5", "#56b4e9", "#a5dcff"},
                                                               {"s6", "#444b54", "#c4cbd3"}}};

std::string color(SvgColors colors, const Role& role) {
  return colors == SvgColors::kFile ? role.light : fmt::format("var(--{})", role.name);
}

}  // namespace

std::string escape_xml(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string SvgPaint::ink() const { return color(colors, kInk); }
std::string SvgPaint::faint() const { return color(colors, kFaint); }
std::string SvgPaint::grid() const { return color(colors, kGrid); }
std::string SvgPaint::paper() const { return color(colors, kPaper); }
std::string SvgPaint::series(int number) const {
  return color(colors, kSeriesRoles[static_cast<std::size_t>(number % kSeries)]);
}

std::string page_color_rules() {
  std::string light, dark;
  auto add = [&](const Role& role) {
    light += fmt::format("--{}:{};", role.name, role.light);
    dark += fmt::format("--{}:{};", role.name, role.dark);
  };
  for (const Role& role : {kInk, kFaint, kGrid, kPaper}) add(role);
  for (const Role& role : kSeriesRoles) add(role);
  return fmt::format(
      ":root{{color-scheme:light dark;{}}}\n"
      "@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n",
      light, dark);
}

double text_width(std::string_view text) {
  double out = 0;
  for (char32_t c : to_code_points(text)) {
    const bool narrow =
        c < 128 && std::string_view("iljtfrI.,:;'|!()[] ").find(static_cast<char>(c)) !=
                       std::string_view::npos;
    const bool wide = (c < 128 && std::string_view("mwMW@%").find(static_cast<char>(c)) !=
                                      std::string_view::npos) ||
                      c >= 0x2e80;
    out += narrow ? 0.36 : wide ? 0.95 : c >= 'A' && c <= 'Z' ? 0.69 : 0.61;
  }
  return out;
}

}  // namespace lockstep
