#include "data/parallel/gettext_text.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

MessagePair cleaned(std::string source, std::string target, bool accelerators = true) {
  MessagePair pair{std::move(source), std::move(target)};
  EXPECT_EQ(clean_messages(pair, accelerators), std::nullopt) << pair.source;
  return pair;
}

std::string reason(std::string source, std::string target) {
  MessagePair pair{std::move(source), std::move(target)};
  return clean_messages(pair, true).value_or("kept");
}

TEST(CatalogueText, DropsAcceleratorsOnBothSides) {
  MessagePair pair = cleaned("Page _number:", "Se_itennummer:");
  EXPECT_EQ(pair.source, "Page number:");
  EXPECT_EQ(pair.target, "Seitennummer:");
  pair = cleaned("Save ~As", "Speichern ~unter");
  EXPECT_EQ(pair.source, "Save As");
  EXPECT_EQ(pair.target, "Speichern unter");
  pair = cleaned("Properties", "_Öffnen");  // on one side only; a letter that is no ASCII
  EXPECT_EQ(pair.target, "Öffnen");
}

TEST(CatalogueText, KeepsRealUnderscoresAndTildes) {
  MessagePair pair = cleaned("bad array_size in _call", "Falsches array_size im _Aufruf");
  EXPECT_EQ(pair.source, "bad array_size in call");
  EXPECT_EQ(pair.target, "Falsches array_size im Aufruf");
  pair = cleaned("Value %AVERAGE_VALUE is $file_name$", "$file_name$ hat den Wert %AVERAGE_VALUE");
  EXPECT_EQ(pair.source, "Value %AVERAGE_VALUE is $file_name$");
  pair = cleaned("Ignore ~~ at the _end", "~~ am Ende _ignorieren");
  EXPECT_EQ(pair.source, "Ignore ~~ at the end");
  EXPECT_EQ(pair.target, "~~ am Ende ignorieren");
  pair = cleaned("use _Atomic ~x", "_Atomic verwenden", false);  // no interface: nothing is a mark
  EXPECT_EQ(pair.source, "use _Atomic ~x");
}

TEST(CatalogueText, DropsTagsAndKeepsPlaceholders) {
  MessagePair pair = cleaned("<ahelp hid=\".\">Opens the <emph>Print</emph> dialog</ahelp>",
                             "<ahelp hid=\".\">Öffnet den Dialog <emph>Drucken</emph></ahelp>");
  EXPECT_EQ(pair.source, "Opens the Print dialog");
  EXPECT_EQ(pair.target, "Öffnet den Dialog Drucken");
  pair = cleaned("First.<BR>Second <file>", "Erstens.<br/>Zweitens <Datei>");
  EXPECT_EQ(pair.source, "First. Second <file>");
  EXPECT_EQ(pair.target, "Erstens. Zweitens <Datei>");
  pair = cleaned("%<sizeof%> of a < b", "%<sizeof%> von a < b");
  EXPECT_EQ(pair.source, "%<sizeof%> of a < b");
}

TEST(CatalogueText, MakesOneLineOfSeveral) {
  MessagePair pair = cleaned("  -h, --help\t  Print\n help\n", "-h, --help\nHilfe ausgeben");
  EXPECT_EQ(pair.source, "-h, --help Print help");
  EXPECT_EQ(pair.target, "-h, --help Hilfe ausgeben");
}

TEST(CatalogueText, RefusesWhatIsNoTranslation) {
  EXPECT_EQ(reason("_Name:", "_Name:"), "not translated");
  EXPECT_EQ(reason("Save", " "), "not translated");
  EXPECT_EQ(reason("loop needs a fixup", "Interner Fehler: loop needs a fixup"), "not translated");
  EXPECT_EQ(reason("%1 - 2", "%1 + 2"), "no words");
  EXPECT_EQ(reason("Start the macros", "%PRODUCTNAME-Makros starten"), "other variables");
  EXPECT_EQ(reason("Move $1 to $2", "Verschiebe $1 nach $1"), "other variables");
  EXPECT_EQ(reason("All <files> here", "Alle hier"), "markup on one side only");
  EXPECT_EQ(reason("_Save _all now", "Alles _sichern"), "unclear accelerator");
}

MoFile catalogue(const std::vector<MessagePair>& pairs) {
  MoFile out;
  for (const MessagePair& pair : pairs) out.entries.push_back({"", pair.source, "", {pair.target}});
  return out;
}

TEST(CatalogueText, KnowsAcceleratorsByTheirMoving) {
  EXPECT_TRUE(
      uses_accelerators(catalogue({{"_Save", "_Speichern"}, {"_OK", "_OK"}, {"_Page", "Sei_te"}})));
  EXPECT_FALSE(uses_accelerators(catalogue({{"bad array_size", "array_size falsch"}, {"a", "b"}})));
  EXPECT_FALSE(uses_accelerators(catalogue({})));
}

TEST(CatalogueText, KnowsAmpersandsByTheirMoving) {
  EXPECT_TRUE(uses_ampersands(catalogue({{"&Save", "&Speichern"}, {"&Page", "S&eite"}})));
  EXPECT_FALSE(uses_ampersands(catalogue({{"AT&T", "AT&T"}, {"a &lt; b", "b &lt; a"}})));
}

TEST(CatalogueText, LosesAmpersandsButNotThoseOfTexts) {
  auto dropped = [](const std::string& source, const std::string& target) {
    MessagePair pair{source, target};
    return drop_ampersands(pair) ? pair.source + "|" + pair.target : "unclear";
  };
  EXPECT_EQ(dropped("&Save as...", "Speichern &unter ..."), "Save as...|Speichern unter ...");
  EXPECT_EQ(dropped("Cut && &paste", "A &amp; &b"), "Cut && paste|A &amp; b");
  EXPECT_EQ(dropped("this & that", "dies & das"), "this & that|dies & das");
  EXPECT_EQ(dropped("&A and &B", "&A"), "unclear");
}

TEST(CatalogueText, KnowsTheNamesOfTranslators) {
  EXPECT_TRUE(names_translators("translator-credits"));
  EXPECT_TRUE(names_translators("Your names"));
  EXPECT_FALSE(names_translators("Your names are too long"));
}

}  // namespace
}  // namespace lockstep
