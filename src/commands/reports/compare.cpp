#include "commands/reports/compare.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"
#include "report/compare/comparison_plots.h"
#include "report/compare/comparison_table.h"
#include "report/draw/html_page.h"
#include "report/draw/raster.h"

namespace lockstep {

namespace {

constexpr double kPixels = 2;  // PNG pixels per pixel of the drawing: sharp in print

struct CompareArguments {
  std::vector<std::string> folders;
  std::string out, title;
  bool json = false, csv = false;
};

// Writes SVG, PNG where possible, and the numbers as CSV; returns them for the page.
std::vector<PageDownload> write_figure(const Figure& figure, const fs::path& folder, bool png) {
  const fs::path svg = folder / (figure.name + ".svg");
  std::vector<PageDownload> out = {
      {svg.filename(), "image/svg+xml", figure_svg(figure, SvgColors::kFile)},
      {figure.name + ".csv", "text/csv", figure_csv(figure)}};
  for (const PageDownload& file : out) write_file(folder / file.file, file.content);
  if (!png) return out;
  const fs::path picture = folder / (figure.name + ".png");
  rasterise(svg, picture, kPixels);
  out.insert(out.begin() + 1, {picture.filename(), "image/png", read_file(picture)});
  return out;
}

std::string title_of(const CompareArguments& a, const Comparison& comparison) {
  if (!a.title.empty()) return a.title;
  if (a.folders.size() == 1) {
    return "Comparison: " + fs::path(a.folders[0]).lexically_normal().string();
  }
  return fmt::format("Comparison of {} runs", comparison.runs.size());
}

void write_all(const CompareArguments& a, const Comparison& comparison) {
  const fs::path folder = a.out;
  std::error_code failed;
  fs::create_directories(folder / "figures", failed);
  if (failed) throw MachineError("{}: cannot be created: {}", folder.string(), failed.message());
  const bool png = can_rasterise();
  if (!png) {
    log_warning("no PNG: rsvg-convert is not there (Debian: apt-get install librsvg2-bin)");
  }
  const std::vector<PageDownload> tables = {
      {"table.csv", "text/csv", comparison_csv(comparison)},
      {"epochs.csv", "text/csv", epochs_csv(comparison)},
      {"comparison.json", "application/json", comparison_json(comparison).dump(2) + "\n"}};
  for (const PageDownload& file : tables) write_file(folder / file.file, file.content);

  HtmlPage page(title_of(a, comparison));
  page.paragraph(
      fmt::format("{} runs in {} groups; runs that differ in their seed alone are one "
                  "group: mean ± standard deviation.",
                  comparison.runs.size(), comparison.groups.size()));
  page.table(comparison_table(comparison));
  page.downloads(tables);
  if (!comparison.notes.empty()) {
    page.heading("To know");
    page.list(comparison.notes);
  }
  const std::vector<Figure> figures = comparison_figures(comparison);
  for (const Figure& figure : figures) {
    page.figure(figure, write_figure(figure, folder / "figures", png));
  }
  page.heading("Figures of the table");
  std::vector<std::string> meanings;
  for (const RunFigure& figure : run_figures()) {
    meanings.push_back(fmt::format(
        "{}{}: {}", figure.name, figure.unit.empty() ? "" : " (" + figure.unit + ")", figure.help));
  }
  page.list(meanings);
  write_file(folder / "compare.html", page.text());
  log_info("wrote {} and {} figures beside it", (folder / "compare.html").string(), figures.size());
}

}  // namespace

int compare(const Arguments& arguments) {
  CompareArguments a;
  CommandLine app("Runs and sweeps side by side: what differs, and what it did (docs/report.md).",
                  "lockstep compare");
  app.add_option("folders", a.folders, "run folders and folders of sweeps")->required();
  app.add_option("-o,--out", a.out,
                 "write a page, its figures (SVG, PNG, CSV) and the tables into this folder");
  app.add_option("--title", a.title, "of the page");
  app.add_flag("--json", a.json, "print JSON");
  app.add_flag("--csv", a.csv, "print CSV");
  if (!app.parse(arguments)) return kExitOk;
  if (a.json && a.csv) throw ConfigError("--json and --csv: one of them");

  const Comparison comparison = compare_runs(read_compared({a.folders.begin(), a.folders.end()}));
  if (a.json) {
    fmt::print("{}\n", comparison_json(comparison).dump(2));
  } else {
    fmt::print("{}", a.csv ? comparison_csv(comparison) : comparison_text(comparison));
  }
  if (!a.out.empty()) write_all(a, comparison);
  return kExitOk;
}

}  // namespace lockstep
