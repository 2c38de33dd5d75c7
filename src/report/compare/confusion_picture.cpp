#include "report/compare/confusion_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "metrics/confusion_pixels.h"
#include "report/draw/svg.h"

namespace lockstep {

namespace {

constexpr int64_t kMostWithText = 40;  // classes

int64_t longest_name(const Confusion& confusion) {
  std::size_t longest = 0;
  for (const std::string& name : confusion.classes) longest = std::max(longest, name.size());
  return static_cast<int64_t>(std::min<std::size_t>(longest, 24));
}

struct Layout {
  bool text = true;
  double cell = 30, left = 10, top = 40;  // pixels; left, top: of the first cell
};

Layout layout_of(const Confusion& confusion) {
  Layout out;
  out.text = confusion.size() <= kMostWithText;
  if (out.text) {
    const auto name = static_cast<double>(longest_name(confusion)) * 7 + 16;
    out.left += name;
    out.top += name;
  } else {
    out.cell = std::max(1.0, 900.0 / static_cast<double>(confusion.size()));
  }
  return out;
}

std::string shorten(const std::string& name) {
  return escape_xml(name.size() > 24 ? name.substr(0, 22) + ".." : name);
}

// Adds the name, accuracy and column title of one class.
void add_names(const Confusion& confusion, const Layout& at, int64_t label, std::string& out) {
  const double middle = (static_cast<double>(label) + 0.5) * at.cell;
  const ClassScore score = class_score(confusion, label);
  const std::string name = shorten(confusion.classes[label]);
  auto to = std::back_inserter(out);
  fmt::format_to(to, "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", at.left - 8,
                 at.top + middle + 4, name);
  fmt::format_to(to, "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\">{}</text>\n",
                 at.left + middle + 4, at.top - 8, name);
  fmt::format_to(to, "<text x=\"{:.1f}\" y=\"{:.1f}\">{:.1f} % of {}</text>\n",
                 at.left + static_cast<double>(confusion.size()) * at.cell + 8, at.top + middle + 4,
                 100 * score.recall, score.items);
}

void add_cell(const Confusion& confusion, const ConfusionShares& shares, const Layout& at,
              std::array<int64_t, 2> place, std::string& out) {
  const auto [row, column] = place;
  const int64_t items = confusion.at(row, column);
  if (items == 0) return;
  const double share = shares.at(row, column);
  const double x = at.left + static_cast<double>(column) * at.cell;
  const double y = at.top + static_cast<double>(row) * at.cell;
  const RgbColor c = confusion_color(share, row == column);
  auto to = std::back_inserter(out);
  fmt::format_to(to,
                 "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
                 "fill=\"#{:02x}{:02x}{:02x}\"><title>{} taken for {}: {}</title></rect>\n",
                 x, y, at.cell, at.cell, c[0], c[1], c[2], escape_xml(confusion.classes[row]),
                 escape_xml(confusion.classes[column]), items);
  if (!at.text) return;
  fmt::format_to(to,
                 "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"{}\">{}</text>\n",
                 x + at.cell / 2, y + at.cell / 2 + 4, share > 0.3 ? "#fff" : "#222", items);
}

}  // namespace

std::string confusion_svg(const Confusion& confusion, const std::string& title) {
  const Layout at = layout_of(confusion);
  const double side = static_cast<double>(confusion.size()) * at.cell;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\" "
      "fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text x=\"10\" y=\"20\" font-size=\"14\">{2}</text>\n",
      at.left + side + (at.text ? 110 : 10), at.top + side + 30, escape_xml(title));
  const ConfusionShares shares(confusion);
  for (int64_t row = 0; row < confusion.size(); ++row) {
    if (at.text) add_names(confusion, at, row, out);
    for (int64_t column = 0; column < confusion.size(); ++column) {
      add_cell(confusion, shares, at, {row, column}, out);
    }
  }
  out += fmt::format(
      "<rect x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{2:.1f}\" fill=\"none\" "
      "stroke=\"#888\"/>\n<text x=\"{3:.1f}\" y=\"{4:.1f}\">rows: the true class; columns: what it "
      "was taken for</text>\n</svg>\n",
      at.left, at.top, side, at.left, at.top + side + 20);
  return out;
}

std::string confusion_png(const Confusion& confusion) {
  return encode_png(confusion_pixels(confusion));
}

std::string confusion_table(const Confusion& confusion) {
  std::string out = "true\ttaken for\titems\n";
  for (int64_t row = 0; row < confusion.size(); ++row) {
    for (int64_t column = 0; column < confusion.size(); ++column) {
      const int64_t items = confusion.at(row, column);
      if (items == 0) continue;
      fmt::format_to(std::back_inserter(out), "{}\t{}\t{}\n", confusion.classes[row],
                     confusion.classes[column], items);
    }
  }
  return out;
}

}  // namespace lockstep
