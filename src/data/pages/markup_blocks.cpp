#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/text.h"
#include "data/pages/page_blocks.h"

namespace lockstep {

namespace {

using namespace std::string_view_literals;

// Elements that do not interrupt a sentence, of HTML, DocBook and Mallard.
constexpr std::array kInline = {"a"sv,
                                "abbr"sv,
                                "accel"sv,
                                "acronym"sv,
                                "action"sv,
                                "anchor"sv,
                                "app"sv,
                                "application"sv,
                                "b"sv,
                                "bdi"sv,
                                "big"sv,
                                "citerefentry"sv,
                                "citetitle"sv,
                                "classname"sv,
                                "cmd"sv,
                                "code"sv,
                                "command"sv,
                                "computeroutput"sv,
                                "constant"sv,
                                "email"sv,
                                "em"sv,
                                "emphasis"sv,
                                "envar"sv,
                                "filename"sv,
                                "firstterm"sv,
                                "font"sv,
                                "foreignphrase"sv,
                                "function"sv,
                                "gui"sv,
                                "guibutton"sv,
                                "guiicon"sv,
                                "guilabel"sv,
                                "guimenu"sv,
                                "guimenuitem"sv,
                                "guiseq"sv,
                                "guisubmenu"sv,
                                "hi"sv,
                                "i"sv,
                                "img"sv,
                                "inlinemediaobject"sv,
                                "input"sv,
                                "interface"sv,
                                "kbd"sv,
                                "key"sv,
                                "keycap"sv,
                                "keycombo"sv,
                                "keyseq"sv,
                                "link"sv,
                                "literal"sv,
                                "manvolnum"sv,
                                "menuchoice"sv,
                                "mousebutton"sv,
                                "option"sv,
                                "output"sv,
                                "parameter"sv,
                                "phrase"sv,
                                "productname"sv,
                                "prompt"sv,
                                "property"sv,
                                "quote"sv,
                                "refentrytitle"sv,
                                "replaceable"sv,
                                "shortcut"sv,
                                "small"sv,
                                "span"sv,
                                "strong"sv,
                                "structfield"sv,
                                "structname"sv,
                                "sub"sv,
                                "sup"sv,
                                "symbol"sv,
                                "sys"sv,
                                "systemitem"sv,
                                "tt"sv,
                                "trademark"sv,
                                "type"sv,
                                "u"sv,
                                "ulink"sv,
                                "userinput"sv,
                                "var"sv,
                                "varname"sv,
                                "wordasword"sv,
                                "xref"sv};

// Elements whose content is no running text.
constexpr std::array kSkipped = {"script"sv,        "style"sv,          "pre"sv,    "screen"sv,
                                 "credit"sv,        "programlisting"sv, "info"sv,   "mal:credit"sv,
                                 "synopsis"sv,      "cmdsynopsis"sv,    "head"sv,   "authorgroup"sv,
                                 "bookinfo"sv,      "articleinfo"sv,    "svg"sv,    "legalnotice"sv,
                                 "literallayout"sv, "revhistory"sv,     "address"sv};

constexpr std::array kHeadings = {"title"sv, "h1"sv, "h2"sv, "h3"sv, "h4"sv, "h5"sv};

constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kEntities = {
    {{"lt", "<"},
     {"gt", ">"},
     {"amp", "&"},
     {"quot", "\""},
     {"apos", "'"},
     {"nbsp", " "},
     {"ndash", "–"},
     {"mdash", "—"},
     {"hellip", "…"},
     {"copy", "©"},
     {"percnt", "%"},
     {"shy", ""}}};

template <std::size_t kCount>
bool is_one_of(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns the text of a reference between '&' and ';'.
std::string resolved(std::string_view name) {
  for (const auto& [entity, text] : kEntities) {
    if (name == entity) return std::string(text);
  }
  if (!name.starts_with('#')) return std::string(name);
  const bool hexadecimal = name.size() > 1 && (name[1] == 'x' || name[1] == 'X');
  name.remove_prefix(hexadecimal ? 2 : 1);
  uint32_t point = 0;
  auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), point, hexadecimal ? 16 : 10);
  const bool valid = error == std::errc() && end == name.data() + name.size() && point >= 0x20 &&
                     point < 0x110000 && !(point >= 0xD800 && point < 0xE000);
  if (!valid) return " ";
  return point == 0xA0 ? " " : to_utf8(std::u32string(1, static_cast<char32_t>(point)));
}

constexpr std::size_t kLongestEntity = 32;

// Replaces character references and reduces white space to single spaces.
std::string running_text(std::string_view raw) {
  std::string text;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const std::size_t end = raw[i] == '&' ? raw.find(';', i) : std::string_view::npos;
    const bool reference =
        end != std::string_view::npos && end > i + 1 && end - i <= kLongestEntity &&
        raw.substr(i + 1, end - i - 1).find_first_of(" &<\n") == std::string_view::npos;
    if (!reference) {
      text += raw[i];
      continue;
    }
    text += resolved(raw.substr(i + 1, end - i - 1));
    i = end;
  }
  std::string out;
  for (std::string_view word : split_words(text)) {
    if (!out.empty()) out += ' ';
    out += word;
  }
  return out;
}

// Returns the value of the attribute id or xml:id within a tag.
std::string id_in(std::string_view tag) {
  for (std::size_t at = tag.find("id=\""); at != std::string_view::npos;
       at = tag.find("id=\"", at + 1)) {
    if (at == 0 || (tag[at - 1] != ' ' && tag[at - 1] != ':')) continue;
    const std::size_t begin = at + 4;
    return std::string(tag.substr(begin, tag.find('"', begin) - begin));
  }
  return {};
}

// Walks over a page and collects the text between the tags of block elements.
class MarkupReader {
 public:
  explicit MarkupReader(std::string_view page) : rest_(page) {}

  std::vector<PageBlock> read() {
    while (!rest_.empty()) {
      const std::size_t tag = std::min(rest_.find('<'), rest_.size());
      text_ += rest_.substr(0, tag);
      rest_.remove_prefix(tag);
      if (!rest_.empty()) read_tag();
    }
    finish_block();
    return std::move(out_);
  }

 private:
  // Removes everything up to and including `end`.
  void skip_past(std::string_view end) {
    const std::size_t at = rest_.find(end);
    rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at + end.size());
  }

  void read_tag() {
    if (rest_.starts_with("<!--")) return skip_past("-->");
    if (rest_.starts_with("<!") || rest_.starts_with("<?")) return skip_past(">");
    std::string_view tag = rest_.substr(0, rest_.find('>'));
    const bool closes = tag.starts_with("</");
    const std::size_t begin = closes ? 2 : 1;
    const std::string name =
        lower_ascii(tag.substr(begin, tag.find_first_of(" \t\r\n/>", begin) - begin));
    if (name.empty() || !(name[0] >= 'a' && name[0] <= 'z')) {  // a lone '<'
      text_ += '<';
      rest_.remove_prefix(1);
      return;
    }
    const bool alone = tag.ends_with('/');
    rest_.remove_prefix(std::min(tag.size() + 1, rest_.size()));
    if (!closes && !alone && is_one_of(kSkipped, name)) {
      finish_block();
      return skip_past("</" + name + ">");
    }
    if (is_one_of(kInline, name)) return;
    if (name == "br") {
      text_ += ' ';
      return;
    }
    finish_block();
    kind_ = closes ? "" : name;
    id_ = closes || alone ? "" : id_in(tag);
  }

  void finish_block() {
    std::string text = running_text(text_);
    text_.clear();
    if (text.empty()) return;
    out_.push_back({kind_, id_, std::move(text), is_one_of(kHeadings, kind_)});
  }

  std::string_view rest_;
  std::string text_, kind_, id_;
  std::vector<PageBlock> out_;
};

}  // namespace

std::vector<PageBlock> markup_blocks(std::string_view page) { return MarkupReader(page).read(); }

}  // namespace lockstep
