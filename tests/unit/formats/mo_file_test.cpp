#include "formats/mo_file.h"

#include <gtest/gtest.h>

#include <string>

#include "support/expect_error.h"
#include "support/mo_writer.h"

namespace lockstep {
namespace {

using testing::mo_bytes;
using testing::mo_header;
using testing::MoStrings;
using namespace std::string_literals;

class MoFileReader : public ::testing::Test {
 protected:
  fs::path write(const std::string& bytes) {
    fs::path path = folder_.path() / "test.mo";
    write_file(path, bytes);
    return path;
  }
  TemporaryFolder folder_;
};

const MoStrings kStrings{mo_header(),
                         {"%d file\0%d files"s, "%d Datei\0%d Dateien"s},
                         {"Save", "Speichern"},
                         {"menu\4Open"s, "Öffnen"}};

TEST_F(MoFileReader, ReadsBothByteOrdersAlike) {
  for (bool big_endian : {false, true}) {
    MoFile file = read_mo_file(write(mo_bytes(kStrings, big_endian)));
    ASSERT_EQ(file.entries.size(), 3u);
    EXPECT_EQ(file.entries[1].id, "Save");
    EXPECT_EQ(file.entries[1].translations, std::vector<std::string>{"Speichern"});
    EXPECT_NE(file.header.find("charset=UTF-8"), std::string::npos);
  }
}

TEST_F(MoFileReader, SeparatesPluralsAndContext) {
  MoFile file = read_mo_file(write(mo_bytes(kStrings)));
  EXPECT_EQ(file.entries[0].id, "%d file");
  EXPECT_EQ(file.entries[0].id_plural, "%d files");
  EXPECT_EQ(file.entries[0].translations, (std::vector<std::string>{"%d Datei", "%d Dateien"}));
  EXPECT_EQ(file.entries[0].context, "");
  EXPECT_EQ(file.entries[2].context, "menu");
  EXPECT_EQ(file.entries[2].id, "Open");
  EXPECT_EQ(file.entries[2].id_plural, "");
}

TEST_F(MoFileReader, ReportsTheCharsetBeforeAnyByteOfIt) {
  MoStrings latin{mo_header("ISO-8859-1"),
                  {"Open",
                   "\xD6"
                   "ffnen"}};
  EXPECT_ERROR(read_mo_file(write(mo_bytes(latin))), DataError, "iso-8859-1");
  MoStrings wrong{mo_header(),
                  {"Open",
                   "\xD6"
                   "ffnen"}};
  EXPECT_ERROR(read_mo_file(write(mo_bytes(wrong))), DataError, "byte 0xd6 is not valid UTF-8");
  EXPECT_ERROR(read_mo_file(write(mo_bytes({{"Save", "Sichern"}}))), DataError, "no charset");
}

TEST_F(MoFileReader, NamesTheOffsetOfDamage) {
  std::string whole = mo_bytes(kStrings);
  EXPECT_ERROR(read_mo_file(write("GIF89a..")), DataError, "not a gettext catalogue");
  EXPECT_ERROR(read_mo_file(write("")), DataError, "offset 0");
  // Every shorter file is damaged, and none of them may be read beyond its end.
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(read_mo_file(write(whole.substr(0, size))), DataError) << size;
  }
  std::string far = whole;
  far[28 + 8 + 4 + 3] = 0x7f;  // the offset of the second original text
  EXPECT_ERROR(read_mo_file(write(far)), DataError, "offset 36: names a text");
  std::string revision = whole;
  revision[6] = 9;
  EXPECT_ERROR(read_mo_file(write(revision)), DataError, "revision 9.0");
  std::string open = whole;
  open.back() = 'x';
  EXPECT_ERROR(read_mo_file(write(open)), DataError, "does not end with a NUL byte");
}

TEST_F(MoFileReader, AcceptsACatalogueWithoutMessages) {
  EXPECT_TRUE(read_mo_file(write(mo_bytes({}))).entries.empty());
  EXPECT_TRUE(read_mo_file(write(mo_bytes({mo_header()}))).entries.empty());
}

}  // namespace
}  // namespace lockstep
