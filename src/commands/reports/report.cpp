#include "commands/reports/report.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/log.h"
#include "launch/plan/plan.h"
#include "report/answers/known_link.h"
#include "report/answers/report_page.h"
#include "report/answers/report_text.h"

namespace lockstep {

namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out, price, bandwidth, doctor;
  double watts = 0, peak_tflops = 0;
  bool json = false;
};

void write_all(const Report& report, const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder / "figures", failed);
  if (failed) throw MachineError("{}: cannot be created: {}", folder.string(), failed.message());
  for (const Answer& answer : report.answers) {
    for (const Figure& figure : answer.figures) {
      write_file(folder / "figures" / (figure.name + ".svg"), figure_svg(figure, SvgColors::kFile));
    }
  }
  write_file(folder / "report.md", report_markdown(report));
  write_file(folder / "report.json", report_json(report).dump(2) + "\n");
  write_file(folder / "report.html", report_page(report));
  log_info("wrote {}, with report.md and report.json beside it", (folder / "report.html").string());
}

}  // namespace

int report(const Arguments& arguments) {
  ReportArguments a;
  CommandLine app("What a run did, and how well, from the files of its folder (docs/report.md).",
                  "lockstep report");
  app.add_option("runs", a.runs, "the run; others after it are put beside it")->required();
  app.add_option("-o,--out", a.out, "folder to write into (default: RUN/report)");
  app.add_option("--price", a.price, "of one host an hour: 0.526/h");
  app.add_option("--watts", a.watts, "that one host takes, from a meter")->non_negative();
  app.add_option("--peak-tflops", a.peak_tflops,
                 "of all ranks together in the run's precision, for the share of the peak (MFU)")
      ->non_negative();
  app.add_option("--bandwidth", a.bandwidth, "of a host's link, as the cloud promises it: 5gbit");
  app.add_option("--doctor", a.doctor,
                 "what `lockstep doctor --json` printed of the run's hosts: the links as measured");
  app.add_flag("--json", a.json, "print report.json and write nothing");
  if (!app.parse(arguments)) return kExitOk;

  ReportOptions options{.watts = a.watts, .peak_tflops = a.peak_tflops};
  if (!a.price.empty()) options.price_per_hour = parse_price(a.price, "--price");
  if (!a.bandwidth.empty()) {
    options.link_bytes_per_second = parse_bandwidth(a.bandwidth, "--bandwidth");
  }
  if (!a.doctor.empty()) options.measured_link = doctor_link_speed(a.doctor);
  const Report made = make_report({a.runs.begin(), a.runs.end()}, options);
  if (a.json) {
    fmt::print("{}\n", report_json(made).dump(2));
    return kExitOk;
  }
  for (const Finding& finding : made.findings) fmt::print("{}\n", finding.text);
  write_all(made, a.out.empty() ? fs::path(a.runs.front()) / "report" : fs::path(a.out));
  return kExitOk;
}

}  // namespace lockstep
