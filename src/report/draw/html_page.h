// Builds one self-contained HTML file, without network or scripts. It is light or dark as the
// reader prefers, and light on paper.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/draw/plot.h"
#include "report/draw/text_table.h"

namespace lockstep {

struct PageDownload {
  std::string file, type, content;  // "epoch-time.png", "image/png", its bytes
};

class HtmlPage {
 public:
  explicit HtmlPage(std::string title) : title_(std::move(title)) {}

  void paragraph(const std::string& text);
  void heading(const std::string& text);
  void list(const std::vector<std::string>& items);
  void table(const TextTable& table);
  // Adds a figure in the page's colours, with its caption and links to save it as files.
  void figure(const Figure& figure, const std::vector<PageDownload>& downloads);
  void downloads(const std::vector<PageDownload>& downloads);  // adds only links

  std::string text() const;

 private:
  std::string title_, body_;
};

// The parts of such pages, for those that are built by hand. `main` is the content of the body,
// `style` goes after the rules of the colours, `scripts` behind the content.
std::string html_table(const TextTable& table);
std::string html_document(const std::string& title, std::string_view style, const std::string& main,
                          const std::string& scripts = "");

std::string base64(const std::string& bytes);  // RFC 4648, section 4

}  // namespace lockstep
