#include "report/timeline/timeline_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "base/text.h"
#include "report/draw/figure_text.h"
#include "report/draw/svg.h"
#include "report/draw/ticks.h"

namespace lockstep {

namespace {

constexpr int64_t kMostSteps = 4;
constexpr std::size_t kMostRanks = 8, kMostLanes = 3;
// These are in pixels.
constexpr double kFigureWidth = 760, kFigureMargin = 14, kFigureTitle = 34, kLegend = 20,
                 kSteps = 18, kLabels = 128, kPhase = 20, kLane = 8, kBetween = 12, kAxis = 42,
                 kText = 12;

// How a kind of span is drawn.
struct Kind {
  const char* name;
  int color;
};
constexpr std::array<Kind, 9> kKinds = {{{"data", 4},
                                         {"forward", 5},
                                         {"backward", 0},
                                         {"wait", 1},
                                         {"optimizer", 2},
                                         {"evaluation", 3},
                                         {"checkpoint", 3},
                                         {"exchange", 6},
                                         {"other", -1}}};
constexpr std::size_t kExchangeKind = 7, kOtherKind = 8;

std::size_t kind_of(const Span& span, const std::string& name) {
  if (span.row == SpanRow::kExchange) return kExchangeKind;
  for (std::size_t k = 0; k < kExchangeKind; ++k) {
    if (name.starts_with(kKinds[k].name)) return k;
  }
  return kOtherKind;
}

std::string kind_color(std::size_t kind, const SvgPaint& paint) {
  return kKinds[kind].color < 0 ? paint.faint() : paint.series(kKinds[kind].color);
}

struct StepRange {
  double begin = 0, end = 0;
  int64_t first = 0, last = 0;  // steps
};

// Returns the steps in the middle, from their first to their last event on any rank, by rank 0's
// clock.
std::optional<StepRange> shown_range(const SpanFile& file) {
  const int64_t all = file.last_step - file.first_step + 1, shown = std::min(all, kMostSteps);
  StepRange out{.begin = std::numeric_limits<double>::max(),
                .end = std::numeric_limits<double>::lowest(),
                .first = file.first_step + (all - shown) / 2};
  out.last = out.first + shown - 1;
  for (const RankSpans& rank : file.ranks) {
    for (const Span& span : rank.spans) {
      if (span.row != SpanRow::kPhases || span.step < out.first || span.step > out.last) continue;
      out.begin = std::min(out.begin, span.begin - rank.clock_offset);
      out.end = std::max(out.end, span.begin + span.length - rank.clock_offset);
    }
  }
  return out.begin < out.end ? std::optional(out) : std::nullopt;
}

// Chooses the row of each exchange, so that those under way together are apart.
class Lanes {
 public:
  std::size_t place(double begin, double end) {
    for (std::size_t lane = 0; lane < kMostLanes; ++lane) {
      if (ends_[lane] > begin && lane + 1 < kMostLanes) continue;
      ends_[lane] = std::max(ends_[lane], end);
      used_ = std::max(used_, lane + 1);
      return lane;
    }
    return 0;
  }
  std::size_t used() const { return used_; }

 private:
  std::array<double, kMostLanes> ends_{};
  std::size_t used_ = 1;
};

class TimelineDrawing {
 public:
  TimelineDrawing(const SpanFile& file, const StepRange& range, SvgColors colors)
      : file_(file), range_(range), paint_{colors} {}

  std::string svg() {
    std::string body;
    double top = kFigureTitle + kLegend + kSteps;
    const double first_top = top;
    for (const RankSpans* rank : shown()) {
      body += rank_svg(*rank, top);
      top += kBetween;
    }
    const double bottom = top - kBetween;
    body = steps_svg(first_top, bottom) + body + axis_svg(bottom + 6);
    const double height = bottom + kAxis;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" aria-label=\"Timeline of steps\" "
        "font-family=\"'DejaVu Sans', Verdana, sans-serif\" font-size=\"{2:.0f}\" "
        "style=\"fill:{3}\">\n",
        kFigureWidth, height, kText, paint_.ink());
    if (paint_.colors == SvgColors::kFile) {
      out +=
          fmt::format("<rect width=\"100%\" height=\"100%\" style=\"fill:{}\"/>\n", paint_.paper());
    }
    out +=
        fmt::format("<text x=\"{:.0f}\" y=\"21\" font-size=\"15\" font-weight=\"600\">{}</text>\n",
                    kFigureMargin, escape_xml(title()));
    return out + legend_svg() + body + "</svg>\n";
  }

  std::string title() const {
    return range_.first == range_.last
               ? fmt::format("Timeline of step {}", with_commas(range_.first))
               : fmt::format("Timeline of steps {} to {}", with_commas(range_.first),
                             with_commas(range_.last));
  }
  // Returns the ranks to show; of many, an even selection.
  std::vector<const RankSpans*> shown() const {
    std::vector<const RankSpans*> out;
    const std::size_t all = file_.ranks.size(), count = std::min(all, kMostRanks);
    for (std::size_t i = 0; i < count; ++i) {
      out.push_back(&file_.ranks[count < 2 ? 0 : i * (all - 1) / (count - 1)]);
    }
    return out;
  }

 private:
  double x(double time) const {
    const double share = (time - range_.begin) / (range_.end - range_.begin);
    return kLabels + std::clamp(share, 0.0, 1.0) * (kFigureWidth - kFigureMargin - kLabels);
  }

  std::string bar(const RankSpans& rank, const Span& span, double top, double height) {
    const double begin = span.begin - rank.clock_offset;
    const double from = x(begin), to = x(begin + span.length);
    const std::string& name = rank.names[static_cast<std::size_t>(span.name)];
    const std::size_t kind = kind_of(span, name);
    used_[kind] = true;
    return fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" style=\"fill:{}\">"
        "<title>{} of step {}, rank {}: {:.3g} ms{}</title></rect>\n",
        from, top, std::max(0.3, to - from), height, kind_color(kind, paint_), escape_xml(name),
        span.step, rank.rank, span.length * 1e3,
        span.bytes > 0 ? ", " + short_bytes(static_cast<double>(span.bytes)) : "");
  }

  // Moves `top` below the rank.
  std::string rank_svg(const RankSpans& rank, double& top) {
    std::string phases, exchanges;
    Lanes lanes;
    for (const Span& span : rank.spans) {
      const double begin = span.begin - rank.clock_offset, end = begin + span.length;
      if (end <= range_.begin || begin >= range_.end) continue;
      if (span.row == SpanRow::kPhases) {
        phases += bar(rank, span, top, kPhase);
      } else if (span.row == SpanRow::kExchange) {
        const auto lane = static_cast<double>(lanes.place(begin, end));
        exchanges += bar(rank, span, top + kPhase + 2 + lane * (kLane + 1), kLane);
      }
    }
    const double height = kPhase + 2 + static_cast<double>(lanes.used()) * (kLane + 1);
    std::string out = fmt::format(
        "<text x=\"{0:.0f}\" y=\"{1:.1f}\">rank {2}</text>\n<text x=\"{0:.0f}\" y=\"{3:.1f}\" "
        "font-size=\"10\" style=\"fill:{4}\">{5}</text>\n",
        kFigureMargin, top + 14, rank.rank, top + 27, paint_.faint(), escape_xml(rank.host));
    top += height;
    return out + phases + exchanges;
  }

  // Draws where rank 0 began each step.
  std::string steps_svg(double top, double bottom) const {
    std::map<int64_t, double> begins;
    if (file_.ranks.empty()) return "";
    const RankSpans& first = file_.ranks.front();
    for (const Span& span : first.spans) {
      if (span.row != SpanRow::kPhases || span.step < range_.first || span.step > range_.last) {
        continue;
      }
      begins.try_emplace(span.step, span.begin - first.clock_offset);
    }
    std::string out;
    for (const auto& [step, begin] : begins) {
      out += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" style=\"stroke:{3}\" "
          "stroke-dasharray=\"3 3\"/>\n<text x=\"{4:.1f}\" y=\"{5:.1f}\" font-size=\"10\" "
          "style=\"fill:{3}\">step {6}</text>\n",
          x(begin), top - 14, bottom, paint_.faint(), x(begin) + 3, top - 5, with_commas(step));
    }
    return out;
  }

  std::string axis_svg(double y) const {
    const double length = (range_.end - range_.begin) * 1e3;
    const Ticks ticks = linear_ticks(0, length, 7);
    std::string out = fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" style=\"stroke:{}\"/>\n",
        kLabels, y, kFigureWidth - kFigureMargin, y, paint_.faint());
    for (std::size_t i = 0; i < ticks.at.size(); ++i) {
      if (ticks.at[i] > length) continue;
      const double at = x(range_.begin + ticks.at[i] / 1e3);
      out += fmt::format(
          "<line x1=\"{0:.1f}\" y1=\"{1:.1f}\" x2=\"{0:.1f}\" y2=\"{2:.1f}\" "
          "style=\"stroke:{3}\"/>\n<text x=\"{0:.1f}\" y=\"{4:.1f}\" text-anchor=\"middle\">"
          "{5}</text>\n",
          at, y, y + 4, paint_.faint(), y + 17, ticks.labels[i]);
    }
    return out + fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\">milliseconds</text>\n", kFigureMargin,
                             y + 17);
  }

  std::string legend_svg() const {
    std::string out;
    double left = kFigureMargin;
    for (std::size_t k = 0; k < kKinds.size(); ++k) {
      if (!used_[k]) continue;
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"10\" style=\"fill:{}\"/>\n"
          "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          left, kFigureTitle + 2, kind_color(k, paint_), left + 19, kFigureTitle + 11,
          kKinds[k].name);
      left += 34 + text_width(kKinds[k].name) * kText;
    }
    return out;
  }

  const SpanFile& file_;
  const StepRange& range_;
  SvgPaint paint_;
  std::array<bool, kKinds.size()> used_{};
};

std::string caption_of(const SpanFile& file, const TimelineDrawing& drawing) {
  double offset = 0, uncertainty = 0;
  for (const RankSpans& rank : file.ranks) {
    offset = std::max(offset, std::abs(rank.clock_offset));
    uncertainty = std::max(uncertainty, rank.clock_uncertainty);
  }
  const std::size_t shown = drawing.shown().size();
  std::string out =
      "Thick: what each rank does; thin, below it: exchanges between the ranks. An exchange "
      "beside forward or backward is hidden, one beside wait is not. Dashed: where rank 0 begins "
      "a step.";
  if (shown < file.ranks.size()) out += fmt::format(" {} of {} ranks.", shown, file.ranks.size());
  if (offset > 0) {
    out += fmt::format(" Clocks are brought to rank 0's: they were up to {} apart, known to {}.",
                       milliseconds(offset), milliseconds(uncertainty));
  }
  return out;
}

}  // namespace

std::optional<Figure> timeline_figure(SpanFile spans) {
  const auto range = shown_range(spans);
  if (!range) return std::nullopt;
  const auto file = std::make_shared<const SpanFile>(std::move(spans));
  const TimelineDrawing drawing(*file, *range, SvgColors::kFile);
  Figure out{.name = "timeline",
             .title = drawing.title(),
             .caption = caption_of(*file, drawing),
             .panels = {}};
  out.draw = [file, range = *range](SvgColors colors) {
    return TimelineDrawing(*file, range, colors).svg();
  };
  return out;
}

std::optional<Figure> timeline_figure(const fs::path& run) {
  const std::vector<fs::path> files = span_files(run);
  return files.empty() ? std::nullopt : timeline_figure(read_span_file(files.back()));
}

}  // namespace lockstep
