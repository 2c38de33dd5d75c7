#include "report/answers/report_page.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/draw/html_page.h"
#include "report/draw/svg.h"

namespace lockstep {

namespace {

constexpr const char* kReportStyle = R"(*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
 font:15.5px/1.55 system-ui,-apple-system,"Segoe UI","DejaVu Sans",Verdana,sans-serif}
main{max-width:900px;margin:0 auto;padding:30px 22px 70px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px}
h2{font-size:19px;line-height:1.3;margin:0 0 6px}
.made,.method,figcaption,.note{color:var(--faint);font-size:13.5px}
.made{margin:0 0 18px}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:10px;margin:0 0 22px}
.tile{border:1px solid var(--grid);border-radius:7px;padding:8px 12px}
.tile b{display:block;font-size:17px;font-weight:600;overflow-wrap:anywhere}
.tile span{color:var(--faint);font-size:12.5px}
.findings{border-left:4px solid var(--s1);padding:2px 0 2px 14px;margin:0 0 22px}
.findings h2{font-size:16px}
.findings ul,nav ol{margin:4px 0;padding-left:22px}
nav{columns:2;column-gap:34px;font-size:14px;margin:0 0 10px}
nav a{display:block;margin:3px 0;break-inside:avoid;text-decoration:none}
a{color:var(--s0)}
section{border-top:1px solid var(--grid);padding:24px 0 6px;margin-top:20px}
.verdict{font-size:17px;font-weight:600;margin:0 0 10px}
section ul{margin:6px 0 12px;padding-left:20px}
.scroll{overflow-x:auto;margin:12px 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:13px}
th,td{padding:5px 12px 5px 0;border-bottom:1px solid var(--grid);text-align:left;vertical-align:top}
th{color:var(--faint);font-weight:600;border-bottom-color:var(--faint);white-space:nowrap}
td{overflow-wrap:break-word;max-width:430px}
.r{text-align:right;white-space:nowrap}
.bars{display:grid;grid-template-columns:max-content minmax(120px,1fr) max-content;gap:5px 12px;
 align-items:center;font-size:13.5px;margin:12px 0}
.track{background:var(--grid);height:15px;border-radius:3px;position:relative;overflow:hidden}
.track i{position:absolute;top:0;bottom:0;background:var(--s0);min-width:2px;border-radius:2px}
.bars .what{grid-column:1/-1;color:var(--faint);font-size:12.5px;margin:-4px 0 5px}
.bars .v{text-align:right;font-variant-numeric:tabular-nums}
figure{margin:18px 0;break-inside:avoid}
figure svg{display:block;width:100%;height:auto}
.chart{display:none;width:100%;height:320px}
.js .live .chart{display:block}.js .live .still{display:none}
.hint{display:none}.js .live .hint{display:inline}
pre{background:color-mix(in srgb,var(--grid) 45%,var(--paper));border-radius:6px;padding:10px 12px;
 font-size:12.5px;line-height:1.5;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}
.missing{border:1px dashed var(--faint);border-radius:7px;padding:8px 14px;margin:14px 0;font-size:13.5px}
.missing p{margin:3px 0}
footer{border-top:1px solid var(--grid);margin-top:34px;padding-top:12px;color:var(--faint);font-size:13px}
.dygraph-legend{background:var(--paper)!important;color:var(--ink);font-size:13px;left:auto!important;
 right:4px;text-align:right;width:auto!important}
.dygraph-axis-label,.dygraph-label{color:var(--ink);font-size:12.5px}
@page{size:A4;margin:14mm}
@media print{main{max-width:none;padding:0}body{font-size:11.5px}.js .live .chart{display:none}
 .js .live .still{display:block}.js .live .hint{display:none}nav{display:none}
 .verdict{font-size:13px}h2{font-size:14.5px;break-after:avoid}section{padding-top:14px;margin-top:10px}
 table{font-size:9.5px}.scroll{overflow:visible}th,td{padding:3px 6px 3px 0}.bars{font-size:11px;break-inside:avoid}
 .made,.method,figcaption,.missing,.bars .what{font-size:10px}
 figure{max-width:140mm;margin:10px 0}.tile,.missing,tr{break-inside:avoid}
 *{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)";

// Redraws every chart when the reader switches between light and dark: canvases keep their colours.
constexpr const char* kCharts = R"js(
(function(){
 if(typeof Dygraph==="undefined")return;
 var all=JSON.parse(document.getElementById("charts").textContent),made=[];
 function draw(){
  var css=getComputedStyle(document.documentElement);
  function color(name){return css.getPropertyValue("--"+name).trim();}
  made.forEach(function(g){g.destroy();});made=[];
  all.forEach(function(c){
   var series={};
   c.labels.forEach(function(n,i){if(i)series[n]={color:color(c.faint[i-1]?"faint":"s"+((i-1)%7)),
    strokePattern:c.faint[i-1]?[5,4]:null,drawPoints:c.few,pointSize:3};});
   made.push(new Dygraph(document.getElementById("chart-"+c.name),c.rows,{labels:c.labels,series:series,
    xlabel:c.x,ylabel:c.y,connectSeparatedPoints:true,strokeWidth:1.6,legend:"always",
    includeZero:c.zero,gridLineColor:color("grid"),axisLineColor:color("faint"),
    labelsSeparateLines:false,axisLabelFontSize:12,rightGap:14,
    axes:{x:{valueFormatter:function(v){return c.x+" "+Math.round(v).toLocaleString("en");},
     axisLabelFormatter:function(v){return v.toLocaleString("en");}},
     y:{axisLabelWidth:74,valueFormatter:function(v){return v.toPrecision(5);}}}}));
  });
 }
 document.documentElement.classList.add("js");
 draw();
 matchMedia("(prefers-color-scheme:dark)").addEventListener("change",draw);
})();
)js";

// A figure with one panel of lines over numbers can be a chart.
bool zooms(const Figure& figure) {
  if (figure.panels.size() != 1 || figure.panels[0].x.logarithmic ||
      figure.panels[0].y.logarithmic) {
    return false;
  }
  std::size_t points = 0;
  for (const PlotSeries& series : figure.panels[0].series) {
    if (series.shape != PlotShape::kLine) return false;
    points += series.points.size();
  }
  return points > 2 && figure.panels[0].x.names.empty();
}

nlohmann::ordered_json chart_of(const Figure& figure) {
  using Json = nlohmann::ordered_json;
  const PlotPanel& panel = figure.panels[0];
  std::map<double, std::vector<double>> rows;  // by x
  Json labels = {panel.x.title}, faint = Json::array();
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    labels.push_back(panel.series[i].name);
    faint.push_back(panel.series[i].reference);
    for (const PlotPoint& p : panel.series[i].points) {
      if (!std::isfinite(p.x) || !std::isfinite(p.y)) continue;
      auto& row = rows.try_emplace(p.x, panel.series.size(), std::nan("")).first->second;
      row[i] = p.y;
    }
  }
  Json table = Json::array();
  for (const auto& [x, values] : rows) {
    Json row = {x};
    for (double y : values) row.push_back(std::isfinite(y) ? Json(y) : Json(nullptr));
    table.push_back(std::move(row));
  }
  constexpr std::size_t kFew = 60;
  return {{"name", figure.name},
          {"x", panel.x.title},
          {"y", panel.y.title},
          {"zero", panel.y.from == 0},
          {"few", rows.size() <= kFew},
          {"labels", labels},
          {"faint", faint},
          {"rows", table}};
}

std::string bars_html(const std::vector<BarRow>& bars) {
  double whole = 0;
  for (const BarRow& bar : bars) whole = std::max(whole, bar.begin + bar.length);
  std::string out = "<div class=\"bars\">\n";
  for (const BarRow& bar : bars) {
    out += fmt::format(
        "<span>{}</span><span class=\"track\"><i style=\"left:{:.2f}%;width:{:.2f}%\"></i></span>"
        "<span class=\"v\">{}</span>\n",
        escape_xml(bar.name), 100 * bar.begin / whole, 100 * bar.length / whole,
        escape_xml(bar.value));
    if (!bar.note.empty())
      out += fmt::format("<span class=\"what\">{}</span>\n", escape_xml(bar.note));
  }
  return out + "</div>\n";
}

std::string figure_html(const Figure& figure, bool live) {
  return fmt::format(
      "<figure{0}>\n{1}<div class=\"still\">{2}</div><figcaption>{3}{4}</figcaption></figure>\n",
      live ? " class=\"live\"" : "",
      live ? fmt::format("<div class=\"chart\" id=\"chart-{}\"></div>", escape_xml(figure.name))
           : "",
      figure_svg(figure, SvgColors::kPage), escape_xml(figure.caption),
      live ? "<span class=\"hint\"> Drag to zoom, double-click to see all.</span>" : "");
}

std::string answer_html(const Report& report, std::size_t index, bool library) {
  const Answer& a = report.answers[index];
  std::string out = fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n<p class=\"verdict\">{}</p>\n",
                                a.id, escape_xml(numbered(report, index)), escape_xml(a.verdict));
  if (!a.bars.empty()) out += bars_html(a.bars);
  if (!a.evidence.empty()) {
    out += "<ul>\n";
    for (const std::string& text : a.evidence) out += "<li>" + escape_xml(text) + "</li>\n";
    out += "</ul>\n";
  }
  for (const TextTable& table : a.tables) out += html_table(table);
  for (const Figure& figure : a.figures) out += figure_html(figure, library && zooms(figure));
  if (!a.code.empty()) {
    out += "<pre>";
    for (const std::string& line : a.code) out += escape_xml(line) + "\n";
    out += "</pre>\n";
  }
  if (!a.not_measured.empty()) {
    out += "<div class=\"missing\"><b>Not measured in this run</b>\n";
    for (const NotMeasured& n : a.not_measured) {
      out += fmt::format("<p>{}: {}. To have it: {}.</p>\n", escape_xml(n.what), escape_xml(n.why),
                         escape_xml(n.how));
    }
    out += "</div>\n";
  }
  if (!a.method.empty())
    out += "<p class=\"method\">How it was found: " + escape_xml(a.method) + "</p>\n";
  return out + "</section>\n";
}

std::string head_html(const Report& report) {
  std::string out =
      fmt::format("<h1>{}</h1>\n<p class=\"made\">{}, made {}</p>\n<div class=\"tiles\">\n",
                  escape_xml(report.title), escape_xml(report.run), report.made);
  for (const auto& [name, value] : report.summary) {
    out += fmt::format("<div class=\"tile\"><span>{}</span><b>{}</b></div>\n", escape_xml(name),
                       escape_xml(value));
  }
  out += "</div>\n";
  if (!report.findings.empty()) {
    out += "<div class=\"findings\"><h2>What stands out</h2>\n<ul>\n";
    for (const Finding& f : report.findings) {
      out += fmt::format("<li>{}</li>\n", escape_xml(f.text));
    }
    out += "</ul></div>\n";
  }
  out += "<nav>\n";
  for (std::size_t i = 0; i < report.answers.size(); ++i) {
    out += fmt::format("<a href=\"#{}\">{}</a>\n", report.answers[i].id,
                       escape_xml(numbered(report, i)));
  }
  return out + "</nav>\n";
}

// Makes JSON safe within a script: no tag may end it.
std::string script_safe(std::string text) {
  for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) {
    text.replace(at, 2, "<\\/");
  }
  return text;
}

}  // namespace

std::string report_page(const Report& report) {
  const ChartLibrary library = chart_library();
  const bool live = !library.script.empty();
  nlohmann::ordered_json charts = nlohmann::ordered_json::array();
  std::string body = head_html(report);
  for (std::size_t i = 0; i < report.answers.size(); ++i) {
    body += answer_html(report, i, live);
    for (const Figure& figure : report.answers[i].figures) {
      if (live && zooms(figure)) charts.push_back(chart_of(figure));
    }
  }
  body += fmt::format("<footer>Made by lockstep {} from the files of the run folder.{}</footer>\n",
                      LOCKSTEP_VERSION, live ? " Charts: dygraphs (MIT licence)." : "");
  std::string scripts;
  if (live) {
    scripts =
        fmt::format("<script type=\"application/json\" id=\"charts\">{}</script>\n<!--\n{}\n-->\n",
                    script_safe(charts.dump()), library.licence);
    scripts += "<script>";
    scripts += library.script;
    scripts += "</script>\n<script>";
    scripts += kCharts;
    scripts += "</script>\n";
  }
  return html_document(report.title, fmt::format("{}{}", library.style, kReportStyle), body,
                       scripts);
}

}  // namespace lockstep
