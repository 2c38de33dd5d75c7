#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
#include "data/pages/page_blocks.h"

namespace lockstep {

namespace {

using namespace std::string_view_literals;

// Special characters of groff_char(7) that occur in running text.
constexpr std::array<std::pair<std::string_view, std::string_view>, 26> kGlyphs = {
    {{"aq", "'"}, {"cq", "’"}, {"oq", "‘"}, {"lq", "“"},  {"rq", "”"}, {"dq", "\""}, {"Bq", "„"},
     {"bq", "‚"}, {"Fo", "«"}, {"Fc", "»"}, {"em", "—"},  {"en", "–"}, {"hy", "-"},  {"bu", "•"},
     {"co", "©"}, {"ha", "^"}, {"ti", "~"}, {"rs", "\\"}, {"ga", "`"}, {"->", "→"},  {"<-", "←"},
     {">=", "≥"}, {"<=", "≤"}, {"mu", "×"}, {"ss", "ß"},  {"lt", "<"}}};

std::string_view glyph(std::string_view name) {
  for (const auto& [known, text] : kGlyphs) {
    if (name == known) return text;
  }
  return {};
}

// Reads one escape sequence after the backslash at text[i] and appends what it prints. Returns the
// index after it.
std::size_t read_escape(std::string_view text, std::size_t i, std::string& out) {
  if (i + 1 >= text.size()) return i + 1;
  const char c = text[i + 1];
  // A name in one of the forms x, (xx and [xxx].
  auto name_at = [&](std::size_t at) -> std::pair<std::string_view, std::size_t> {
    if (at >= text.size()) return {{}, at};
    if (text[at] == '(') return {text.substr(at + 1, 2), std::min(at + 3, text.size())};
    if (text[at] != '[') return {text.substr(at, 1), at + 1};
    const std::size_t end = std::min(text.find(']', at), text.size());
    return {text.substr(at + 1, end - at - 1), std::min(end + 1, text.size())};
  };
  switch (c) {
    case '(':
    case '[': {
      auto [name, end] = name_at(i + 1);
      out += glyph(name);
      return end;
    }
    case 'f':
    case 'F':
    case 'm':
    case '*':
      return name_at(i + 2).second;
    case 's': {  // sizes: \s0, \s-1, \s+2
      std::size_t end = i + 2;
      if (end < text.size() && (text[end] == '-' || text[end] == '+')) ++end;
      return std::min(end + 1, text.size());
    }
    case '-':
      out += '-';
      return i + 2;
    case 'e':
    case '\\':
      out += '\\';
      return i + 2;
    case ' ':
    case '~':
    case '0':
      out += ' ';
      return i + 2;
    case '\'':
    case '`':
      out += c;
      return i + 2;
    case '"':  // the rest is a comment
      return text.size();
    default:  // \& \: \% \/ \, \c \| \^ and the like print nothing
      return i + 2;
  }
}

std::string printed(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\\') {
      i = read_escape(text, i, out);
    } else {
      out += text[i++];
    }
  }
  return out;
}

// Splits the arguments of a macro: words, or texts in double quotes.
std::vector<std::string> arguments_of(std::string_view line) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < line.size();) {
    if (line[i] == ' ' || line[i] == '\t') {
      ++i;
      continue;
    }
    std::string word;
    const bool quoted = line[i] == '"';
    i += quoted;
    while (i < line.size()) {
      if (quoted && line[i] == '"') {
        if (i + 1 >= line.size() || line[i + 1] != '"') break;
        ++i;  // "" stands for "
      } else if (!quoted && (line[i] == ' ' || line[i] == '\t')) {
        break;
      } else if (line[i] == '\\' && i + 1 < line.size()) {
        word += line[i++];
      }
      word += line[i++];
    }
    i += quoted;
    out.push_back(std::move(word));
  }
  return out;
}

// Macros that set their arguments in other fonts, within a sentence.
constexpr std::array kFonts = {"B"sv,  "I"sv,  "BR"sv, "RB"sv, "BI"sv,
                               "IB"sv, "IR"sv, "RI"sv, "SM"sv, "SB"sv};

class ManualReader {
 public:
  std::vector<PageBlock> read(std::string_view page) {
    while (!page.empty()) {
      const std::size_t end = std::min(page.find('\n'), page.size());
      std::string_view line = page.substr(0, end);
      page.remove_prefix(std::min(end + 1, page.size()));
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (line.starts_with(".Dd") || line.starts_with(".Sh")) return {};  // mdoc
      read_line(line);
    }
    finish_block("");
    return std::move(out_);
  }

 private:
  void read_line(std::string_view line) {
    if (line.starts_with(".\\\"") || line.starts_with("'\\\"")) return;
    const bool macro = line.starts_with('.') || line.starts_with('\'');
    if (verbatim_) {
      verbatim_ = !(line.starts_with(".fi") || line.starts_with(".EE"));
    } else if (macro) {
      read_macro(trim(line.substr(1)));
    } else if (trim(line).empty()) {
      finish_block(".PP");
    } else {
      text_ += printed(line);
      end_line();
    }
  }

  // The first line after .TP is its tag.
  void end_line() {
    text_ += ' ';
    if (kind_ == ".TP") finish_block(".TP text");
  }

  void read_macro(std::string_view line) {
    const std::string_view name = line.substr(0, line.find_first_of(" \t"));
    std::string_view rest = line.substr(name.size());
    if (std::find(kFonts.begin(), kFonts.end(), name) != kFonts.end()) return add_font(name, rest);
    if (name == "br" || name == "ad" || name == "na" || name == "hy" || name == "nh" ||
        name == "ne" || name == "ie" || name == "el" || name == "if" || name == "PD") {
      return;
    }
    if (name == "nf" || name == "EX") {
      finish_block(".PP");
      verbatim_ = true;
    } else if (name == "SH" || name == "SS") {
      finish_block("." + std::string(name));
      add_words(arguments_of(rest), " ");
      if (!trim(text_).empty()) finish_block(".PP");
    } else if (name == "IP") {
      std::vector<std::string> words = arguments_of(rest);
      finish_block(".IP tag");
      if (!words.empty()) add_words({words.front()}, " ");
      finish_block(".IP");
    } else if (name == "TP" || name == "TQ") {
      finish_block(".TP");
    } else if (name == "UR" || name == "MT" || name == "UE" || name == "ME") {
      add_words(arguments_of(rest), " ");
    } else {
      finish_block(".PP");
    }
  }

  // In .B and .I words stay apart; the alternating ones join theirs.
  void add_font(std::string_view name, std::string_view rest) {
    add_words(arguments_of(rest), name.size() == 1 || name == "SM" || name == "SB" ? " " : "");
    end_line();
  }

  void add_words(const std::vector<std::string>& words, std::string_view between) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (i > 0) text_ += between;
      text_ += printed(words[i]);
    }
  }

  // Ends the block and begins one of another kind.
  void finish_block(std::string next) {
    std::string text;
    for (std::string_view word : split_words(text_)) {
      if (!text.empty()) text += ' ';
      text += word;
    }
    text_.clear();
    const bool heading = kind_ == ".SH" || kind_ == ".SS";
    if (!text.empty()) out_.push_back({kind_, "", std::move(text), heading});
    kind_ = std::move(next);
  }

  std::string text_, kind_ = ".PP";
  bool verbatim_ = false;
  std::vector<PageBlock> out_;
};

}  // namespace

std::vector<PageBlock> manual_blocks(std::string_view page) { return ManualReader().read(page); }

}  // namespace lockstep
