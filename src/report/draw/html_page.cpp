#include "report/draw/html_page.h"

#include <fmt/format.h>

namespace lockstep {

namespace {

constexpr const char* kPageStyle = R"(*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
 font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",Verdana,sans-serif}
main{max-width:1240px;margin:0 auto;padding:28px 22px 60px}
h1{font-size:25px;line-height:1.25;margin:0 0 10px}
h2{font-size:18px;margin:34px 0 8px}
.scroll{overflow-x:auto;margin:12px 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:12.5px;white-space:nowrap}
th,td{padding:5px 8px;border-bottom:1px solid var(--grid);text-align:left}
th{color:var(--faint);font-weight:600;border-bottom-color:var(--faint)}
.r{text-align:right}
figure{max-width:900px;margin:30px 0;break-inside:avoid}
figure svg{display:block;width:100%;height:auto}
figcaption,.links{color:var(--faint);font-size:13.5px}
figcaption{margin-top:4px}
a{color:var(--s0)}
li{margin:2px 0}
@page{size:A4 landscape;margin:12mm}
@media print{main{max-width:none;padding:0}figure{max-width:165mm;margin:5mm 0}
 .links{display:none}body{font-size:12px}
 table{font-size:9px}th,td{padding:3px 4px}.scroll{overflow:visible}}
)";

std::string links(const std::vector<PageDownload>& downloads) {
  std::string out;
  for (const PageDownload& d : downloads) {
    out += fmt::format("{}<a download=\"{}\" href=\"data:{};base64,{}\">{}</a>",
                       out.empty() ? "" : " · ", escape_xml(d.file), d.type, base64(d.content),
                       escape_xml(d.file));
  }
  return out;
}

}  // namespace

std::string html_table(const TextTable& table) {
  auto row = [&](const std::vector<std::string>& cells, const char* tag) {
    std::string out = "<tr>";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const bool right = i < table.alignment.size() && table.alignment[i] == 'r';
      out +=
          fmt::format("<{0}{1}>{2}</{0}>", tag, right ? " class=\"r\"" : "", escape_xml(cells[i]));
    }
    return out + "</tr>\n";
  };
  std::string out =
      "<div class=\"scroll\"><table>\n<thead>\n" + row(table.header, "th") + "</thead>\n<tbody>\n";
  for (const auto& cells : table.rows) out += row(cells, "td");
  return out + "</tbody>\n</table></div>\n";
}

std::string html_document(const std::string& title, std::string_view style, const std::string& main,
                          const std::string& scripts) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n{}"
      "</body>\n</html>\n",
      escape_xml(title), page_color_rules(), style, main, scripts);
}

std::string base64(const std::string& bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const bool padding = i + k > bytes.size();
      out += padding ? '=' : kDigits[group >> (18 - 6 * k) & 63];
    }
  }
  return out;
}

void HtmlPage::paragraph(const std::string& text) { body_ += "<p>" + escape_xml(text) + "</p>\n"; }

void HtmlPage::heading(const std::string& text) { body_ += "<h2>" + escape_xml(text) + "</h2>\n"; }

void HtmlPage::list(const std::vector<std::string>& items) {
  if (items.empty()) return;
  body_ += "<ul>\n";
  for (const std::string& item : items) body_ += "<li>" + escape_xml(item) + "</li>\n";
  body_ += "</ul>\n";
}

void HtmlPage::table(const TextTable& table) { body_ += html_table(table); }

void HtmlPage::figure(const Figure& figure, const std::vector<PageDownload>& downloads) {
  body_ +=
      fmt::format("<figure id=\"{}\">\n{}<figcaption>{}</figcaption>\n", escape_xml(figure.name),
                  figure_svg(figure, SvgColors::kPage), escape_xml(figure.caption));
  if (!downloads.empty()) body_ += "<div class=\"links\">" + links(downloads) + "</div>\n";
  body_ += "</figure>\n";
}

void HtmlPage::downloads(const std::vector<PageDownload>& downloads) {
  body_ += "<p class=\"links\">" + links(downloads) + "</p>\n";
}

std::string HtmlPage::text() const {
  return html_document(title_, kPageStyle,
                       fmt::format("<h1>{}</h1>\n{}", escape_xml(title_), body_));
}

}  // namespace lockstep
